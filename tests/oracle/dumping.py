"""Both dump tools behind one function each, for comparing them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.oracle.apache_kafka import run_tool

from moldau.cli.dump_log.command import main

EXTENSIONS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


class Dumped(NamedTuple):
    status: int
    out: str
    err: str


def log_files(directory: Path, extensions: Sequence[str] = EXTENSIONS) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.suffix in extensions)


def dumped_by_kafka(files: Iterable[Path], *options: str) -> Dumped:
    done = run_tool("org.apache.kafka.tools.DumpLogSegments", ["--files", _joined(files), *options])
    return Dumped(done.returncode, done.stdout, done.stderr)


def dumped_by_moldau(files: Iterable[Path], *options: str) -> Dumped:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["--files", _joined(files), *options])
    return Dumped(status, out.getvalue(), err.getvalue())


def assert_same_dump(files: Sequence[Path], *options: str) -> Dumped:
    """Both say the same; returns it. Problems are compared as sets: the order of Java's maps means nothing."""
    theirs, ours = dumped_by_kafka(files, *options), dumped_by_moldau(files, *options)
    assert ours.out.splitlines() == theirs.out.splitlines()
    assert sorted(ours.err.splitlines()) == sorted(theirs.err.splitlines())
    assert ours.status == theirs.status == 0
    return ours


def _joined(files: Iterable[Path]) -> str:
    return ",".join(map(str, files))
