"""The C load clients: compiled on first use, run as processes, their JSON read back.

C because librdkafka's Python binding would be what we measure. Both brokers get the very same binaries.
Start at `run`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

__all__ = ["ClientError", "command", "librdkafka_version", "run"]

SOURCES = Path(__file__).parent / "clients"
TIMEOUT_S = 600
LIBRARIES = {"rdkafka_load": ["-lrdkafka", "-lpthread"], "socket_load": [], "http_load": []}


class ClientError(Exception):
    """A load client could not be built or did not finish its work."""


def run(program: str, action: str, **options: object) -> dict[str, Any]:
    """Run one client to its end, `run("rdkafka_load", "produce", brokers=…, topic=…)`, and return its JSON."""
    arguments = command(program, action, **options)
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as expired:
        raise ClientError(f"{program} {action} {options}: not done after {TIMEOUT_S} s") from expired
    if done.returncode:
        raise ClientError(f"{program} {action} {options}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def command(program: str, action: str, **options: object) -> list[str]:
    """The command line of one client, for callers that keep it running beside something else."""
    return [str(_binary(program)), action, *(f"{name}={value}" for name, value in options.items())]


def librdkafka_version() -> str:
    """The version of the shared library the client is linked against."""
    name = ctypes.util.find_library("rdkafka")
    if name is None:
        return "unknown"
    library = ctypes.CDLL(name)
    library.rd_kafka_version_str.restype = ctypes.c_char_p
    version: bytes = library.rd_kafka_version_str()
    return version.decode()


@functools.cache
def _binary(program: str) -> Path:
    """Compile `clients/<program>.c` unless the cache has this very source already."""
    source = SOURCES / f"{program}.c"
    digest = hashlib.sha256(source.read_bytes() + (SOURCES / "common.h").read_bytes()).hexdigest()[:12]
    binary = _cache() / f"{program}-{digest}"
    if not binary.exists():
        _compile(source, binary, LIBRARIES[program])
    return binary


def _compile(source: Path, binary: Path, libraries: list[str]) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise ClientError("no C compiler; on Debian and Ubuntu: apt-get install gcc libc6-dev librdkafka-dev")
    binary.parent.mkdir(parents=True, exist_ok=True)
    partial = binary.with_suffix(f".{os.getpid()}")
    arguments = [compiler, "-O2", "-std=gnu11", "-o", str(partial), str(source), *libraries]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClientError(f"{source.name} does not compile (is librdkafka-dev installed?):\n{done.stderr}")
    partial.rename(binary)


def _cache() -> Path:
    return Path(os.environ.get("MOLDAU_CACHE") or Path.home() / ".cache" / "moldau") / "bench"
