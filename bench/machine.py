"""The machine under the benchmark: what it is, how to make it quiet, what a process has used.

Reads /proc, so Linux only. Knows nothing of brokers. Start at `settle` and `Usage`.
"""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Usage", "describe", "drop_from_page_cache", "settle", "touch_memory", "usage_of"]

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
QUIET_DIRTY_BYTES = 8 << 20
QUIET_BUSY_SHARE = 0.15


@dataclass(frozen=True)
class Usage:
    """What a process and its children hold and have used so far."""

    cpu_s: float
    resident_bytes: int


def usage_of(pid: int) -> Usage:
    """Sum over the process tree. Shared pages count once per process, so a tree never looks smaller than it is."""
    cpu_s, resident_bytes = 0.0, 0
    for member in _tree(pid):
        try:
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
            pages = int(Path(f"/proc/{member}/statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        # utime and stime, and those of children already waited for.
        cpu_s += sum(map(int, fields[11:15])) / TICKS_PER_SECOND
        resident_bytes += pages * PAGE_BYTES
    return Usage(cpu_s, resident_bytes)


def _tree(pid: int) -> list[int]:
    members = [pid]
    for member in members:
        for task in Path(f"/proc/{member}/task").glob("*/children"):
            try:
                members += map(int, task.read_text().split())
            except (FileNotFoundError, ProcessLookupError):
                continue
    return members


def settle(timeout_s: float = 60.0) -> bool:
    """Write back what is dirty and wait until nobody works; tells whether that came about in time.

    Otherwise the write-back of the run before is what the next run measures.
    """
    os.sync()
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        busy_before, total_before = _processor_ticks()
        time.sleep(0.25)
        busy_after, total_after = _processor_ticks()
        busy_share = (busy_after - busy_before) / max(1, total_after - total_before)
        if busy_share < QUIET_BUSY_SHARE and _dirty_bytes() < QUIET_DIRTY_BYTES:
            return True
    return False


def _processor_ticks() -> tuple[int, int]:
    """Busy and total ticks of all processors since boot."""
    ticks = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)


def _dirty_bytes() -> int:
    wanted = ("Dirty:", "Writeback:")
    lines = Path("/proc/meminfo").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(wanted))


def touch_memory(folder: Path, size_bytes: int = 1_500_000_000) -> None:
    """Use fresh memory once: on a virtual machine the first pass over it is up to three times slower."""
    block = bytes(1 << 20)
    path = folder / "touch"
    with path.open("wb") as file:
        for _ in range(size_bytes // len(block)):
            file.write(block)
    path.unlink()


def drop_from_page_cache(folder: Path) -> int:
    """Make the files below `folder` cold, so that reading them means the disk; returns their bytes."""
    os.sync()
    total = 0
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                total += os.fstat(file.fileno()).st_size
    return total


def describe() -> dict[str, str]:
    """What a reader needs in order to judge the numbers; nothing that identifies the machine."""
    processor = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    memory = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {
        "processor": f"{os.cpu_count()} × {processor}",
        "memory": f"{memory / (1 << 20):.0f} GiB",
        "system": f"Linux {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
