"""A service and its engine process find each other, whichever of them was killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.unit.pipeline.runtime.hosting import fake_pipelines
from tests.unit.pipeline.runtime.hosting.fake_pipelines import fake_spec

from moldau.core.errors import StartupError
from moldau.pipeline.runtime.hosting.engine_client import EngineClient, EngineError, EngineUnreachableError
from moldau.pipeline.runtime.hosting.engine_files import EngineAddress, EngineFiles
from moldau.pipeline.runtime.hosting.engine_link import EngineLink

PATIENCE_S = 40.0


@asynccontextmanager
async def link_to(folder: Path, *, owns_engine: bool = True) -> AsyncIterator[EngineLink]:
    command = [sys.executable, "-m", fake_pipelines.__name__, str(folder)]
    link = EngineLink(EngineFiles(folder), command, prefix="q-", owns_engine=owns_engine, check_s=0.05)
    link.start()
    try:
        yield link
    finally:
        await link.stop()


async def until_running(link: EngineLink, *names: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not all((link.status(name) or {}).get("state") == "RUNNING" for name in names):
            await asyncio.sleep(0.01)


def pid_of(folder: Path) -> int:
    address = EngineFiles(folder).find()
    assert address is not None
    return address.pid


def test_an_engine_starts_with_the_first_pipeline_and_ends_with_its_service(tmp_path: Path) -> None:
    async def run() -> None:
        async with link_to(tmp_path) as link:
            assert await link.settle(PATIENCE_S)
            assert EngineFiles(tmp_path).find() is None
            link.want(fake_spec("q-1", sql="SELECT"))
            assert await link.settle(PATIENCE_S)
            await until_running(link, "q-1")
            assert await link.ask("explain", "q-1") == "q-1 does nothing"
            assert (await link.ask("pipeline", "q-1"))["metrics"]["restarts"] == 0
            with pytest.raises(EngineError, match="no pipeline 'q-2'"):
                await link.ask("explain", "q-2")
        assert not EngineFiles(tmp_path).is_held()

    asyncio.run(run())


def test_a_killed_engine_is_replaced_and_gets_all_pipelines(tmp_path: Path) -> None:
    async def run() -> None:
        async with link_to(tmp_path) as link:
            link.want(fake_spec("q-1"))
            link.want(fake_spec("q-2"))
            await until_running(link, "q-1", "q-2")
            first = pid_of(tmp_path)
            os.kill(first, signal.SIGKILL)
            async with asyncio.timeout(PATIENCE_S):
                while (address := EngineFiles(tmp_path).find()) is None or address.pid == first:
                    await asyncio.sleep(0.01)
            await until_running(link, "q-1", "q-2")

    asyncio.run(run())


def test_a_new_service_finds_the_running_engine_and_mends_the_difference(tmp_path: Path) -> None:
    async def run() -> None:
        async with link_to(tmp_path, owns_engine=False) as old:
            old.want(fake_spec("q-kept"))
            old.want(fake_spec("q-unwanted"))
            await until_running(old, "q-kept", "q-unwanted")
        engine = pid_of(tmp_path)
        async with link_to(tmp_path) as new:
            new.want(fake_spec("q-kept"))
            new.want(fake_spec("q-new"))
            await until_running(new, "q-kept", "q-new")
            assert await new.settle(PATIENCE_S)
            assert new.status("q-unwanted") is None
            assert pid_of(tmp_path) == engine
            assert (new.status("q-kept") or {})["restarts"] == 0
        assert old._process is not None
        old._process.wait(PATIENCE_S)  # a killed service would have left its child to the system

    asyncio.run(run())


def test_state_is_deleted_also_of_a_pipeline_that_does_not_run(tmp_path: Path) -> None:
    async def run() -> None:
        async with link_to(tmp_path) as link:
            link.want(fake_spec("q-1"))
            await until_running(link, "q-1")
            link.unwant(fake_spec("q-1"), delete_state=True)
            link.unwant(fake_spec("q-gone"), delete_state=True)
            assert await link.settle(PATIENCE_S)
            assert {path.name for path in tmp_path.glob("deleted-*")} == {"deleted-q-1", "deleted-q-gone"}

    asyncio.run(run())


def test_a_folder_has_one_engine_and_its_token_is_private(tmp_path: Path) -> None:
    async def run() -> None:
        async with link_to(tmp_path) as link:
            link.want(fake_spec("q-1"))
            await until_running(link, "q-1")
            files = EngineFiles(tmp_path)
            with pytest.raises(StartupError, match="there can be only one"), files.held():
                pass
            assert (tmp_path / "engine.json").stat().st_mode & 0o077 == 0
            address = files.find()
            assert address is not None
            with pytest.raises(EngineError, match="token"):
                EngineClient(EngineAddress(address.pid, address.port, "guess")).pipelines()

    asyncio.run(run())


def test_a_program_that_ends_at_once_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        link = EngineLink(EngineFiles(tmp_path), [sys.executable, "-c", "exit(3)"], prefix="q-", check_s=0.05)
        link.start()
        link.want(fake_spec("q-1"))
        async with asyncio.timeout(PATIENCE_S):
            while "ended with status 3; its log says why" not in caplog.text:
                await asyncio.sleep(0.01)
        with pytest.raises(EngineUnreachableError, match="not started"):
            await link.ask("explain", "q-1")
        await link.stop()

    asyncio.run(run())
