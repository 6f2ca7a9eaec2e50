from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from moldau.broker.data import cold_reads
from moldau.broker.data.cold_reads import is_page_resident, is_resident, read_now, touch


class File(NamedTuple):
    fd: int

    def fileno(self) -> int:
        return self.fd


class Range(NamedTuple):
    file: File
    position: int
    length: int


@pytest.fixture
def written(tmp_path: Path) -> Range:
    path = tmp_path / "log"
    path.write_bytes(os.urandom(1_000_000))
    return Range(File(os.open(path, os.O_RDONLY)), 10, 900_000)


def test_what_was_just_written_is_at_hand(written: Range) -> None:
    assert is_resident(written)
    assert is_page_resident(written.file.fd, 500)
    assert read_now(written._replace(length=50)) == os.pread(written.file.fd, 50, 10)


def test_what_is_not_cached_is_not_at_hand_until_it_was_touched(written: Range) -> None:
    os.fsync(written.file.fd)
    os.posix_fadvise(written.file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    if is_page_resident(written.file.fd, 500_000):
        pytest.skip("this file system keeps its pages or cannot tell")
    touch(written)
    assert is_resident(written)


def test_a_page_that_would_have_to_be_waited_for_is_not_read(written: Range, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> int:
        raise BlockingIOError

    monkeypatch.setattr(cold_reads.os, "preadv", missing)
    assert read_now(written) is None
    assert not is_resident(written)
    assert not is_page_resident(written.file.fd, 0)


def test_a_file_system_that_cannot_tell_counts_as_warm(written: Range, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> int:
        raise OSError(95, "not supported")

    monkeypatch.setattr(cold_reads.os, "preadv", unsupported)
    assert is_resident(written)
    assert read_now(written._replace(length=50)) == os.pread(written.file.fd, 50, 10)
