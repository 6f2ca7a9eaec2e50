"""Folders of killed drivers go, all others stay: locks and kills are real, Spark is not needed for it."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moldau.pipeline.spark.driver.scratch import open_scratch, sweep

OWNER = """
import sys, threading
from pathlib import Path
from moldau.pipeline.spark.driver.scratch import open_scratch
scratch = open_scratch(Path(sys.argv[1]))
(scratch.folder / "libbig.so").write_bytes(b"x" * 1000)
if len(sys.argv) > 2:
    scratch.note_java(int(sys.argv[2]))
print(scratch.folder, flush=True)
threading.Event().wait()
"""


@contextmanager
def owner(base: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    process = subprocess.Popen([sys.executable, "-c", OWNER, str(base), *words], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def killed(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_the_next_start_removes_what_a_killed_driver_left(tmp_path: Path) -> None:
    base = tmp_path / "base"
    with owner(base) as (process, folder):
        assert sweep(base) == 0
        assert (folder / "libbig.so").exists()
        killed(process)
        scratch = open_scratch(base)
        assert scratch is not None
        assert not folder.exists()
        assert sorted(path.name for path in base.iterdir()) == [scratch.folder.name, f"{scratch.folder.name}.lock"]
        scratch.close()
        scratch.close()
    assert list(base.iterdir()) == []


def test_a_java_process_that_still_runs_keeps_the_folder(tmp_path: Path) -> None:
    with owner(tmp_path / "base", str(os.getpid())) as (process, folder):
        killed(process)
        assert sweep(tmp_path / "base") == 0
        assert folder.exists()


@pytest.mark.parametrize(
    "change", [{"started": "1"}, {"system": "another boot pid:[1]"}, {"pid": 2**22 + 1}], ids=["reuse", "boot", "gone"]
)
def test_another_process_with_its_number_does_not(tmp_path: Path, change: dict[str, object]) -> None:
    with owner(tmp_path / "base", str(os.getpid())) as (process, folder):
        killed(process)
        lock_file = folder.with_suffix(".lock")
        content = json.loads(lock_file.read_text())
        lock_file.write_text(json.dumps({**content, "java": {**content["java"], **change}}))
        assert sweep(tmp_path / "base") == 1
        assert not folder.exists()


@pytest.mark.parametrize("content", ["", "no json", "[]", '{"java": null}', '{"java": {}}'])
def test_a_note_that_cannot_be_read_leaves_the_decision_to_the_lock(tmp_path: Path, content: str) -> None:
    with owner(tmp_path / "base") as (process, folder):
        folder.with_suffix(".lock").write_text(content)
        assert sweep(tmp_path / "base") == 0
        killed(process)
        assert sweep(tmp_path / "base") == 1


def test_what_has_no_lock_is_not_surely_ours(tmp_path: Path) -> None:
    base = tmp_path / "base"
    (base / "somebodys").mkdir(parents=True)
    (base / "link.lock").symlink_to(tmp_path / "elsewhere")
    base.chmod(0o700)
    (tmp_path / "elsewhere").write_text("{}")
    assert sweep(base) == 0
    assert (base / "somebodys").exists()
    assert (tmp_path / "elsewhere").exists()


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    base.chmod(0o777)
    assert open_scratch(base) is None
    (tmp_path / "file").write_text("")
    assert open_scratch(tmp_path / "file") is None
    (tmp_path / "link").symlink_to(base)
    assert open_scratch(tmp_path / "link") is None
    assert stat.S_IMODE(base.stat().st_mode) == 0o777


def test_where_locks_do_not_work_nothing_is_used_and_nothing_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base"
    with owner(base) as (process, folder):
        killed(process)

        def unsupported(lock: int, how: int) -> None:
            raise OSError(errno.ENOTSUP, "no locks here")

        monkeypatch.setattr("fcntl.flock", unsupported)
        assert open_scratch(base) is None
        assert folder.exists()
        assert len(list(base.iterdir())) == 2


def test_many_starts_at_once_do_not_take_each_others_folders(tmp_path: Path) -> None:
    base = tmp_path / "base"
    program = (
        "import sys; from pathlib import Path; from moldau.pipeline.spark.driver.scratch import open_scratch\n"
        "for _ in range(50):\n"
        "    scratch = open_scratch(Path(sys.argv[1]))\n"
        "    (scratch.folder / 'f').touch(exist_ok=False)\n"
        "    scratch.close()\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", program, str(base)]) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0, 0, 0, 0]
    assert list(base.iterdir()) == []
