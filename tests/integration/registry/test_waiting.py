"""A registry that waits for its brokers says so, and leaves at once when it is told to."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest
from tests.integration.cli_commands import Running, installed

from moldau.client.coordination.outages import log_while_waiting


def test_waiting_is_told_and_can_be_interrupted() -> None:
    command = [*installed("moldau"), "registry", "--port", "0", "-b", "localhost:1"]
    with Running(command) as registry:
        (line,) = registry.lines(1)
        assert "waiting for brokers at localhost:1, for " in line
        assert registry.interrupt() == 0
        assert "received SIGINT" in registry.stdout[-2]
        assert registry.stderr == []


def test_it_is_told_again_and_again_until_the_wait_ends(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("moldau.registry")

    async def wait() -> None:
        async with log_while_waiting("b:1", time.monotonic() + 60, logger, first_s=0, next_s=0):
            while len(caplog.records) < 3:
                await asyncio.sleep(0)
        count = len(caplog.records)
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(caplog.records) == count

    with caplog.at_level(logging.INFO, "moldau.registry"):
        asyncio.run(wait())
    assert "waiting for brokers at b:1, for 60 s more" in caplog.text
