"""Metrics of a service's process, under the names of the standard Prometheus collector. Start at `process_families`."""

from __future__ import annotations

import os
import platform
import resource
import sys
import time
from collections.abc import Iterator

from moldau.core.prometheus import MetricFamily, MetricType, Series

__all__ = ["process_families"]

_STARTED_S = time.time()


def process_families() -> Iterator[MetricFamily]:
    """CPU, memory, files and the interpreter; memory and files on Linux only."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield _one("process_cpu_seconds_total", MetricType.COUNTER, "CPU time used.", usage.ru_utime + usage.ru_stime)
    yield _gauge("process_start_time_seconds", "When the process began.", _STARTED_S)
    yield _gauge("process_max_fds", "Files that may be open.", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    if sys.platform == "linux":
        with open("/proc/self/statm", encoding="ascii") as file:
            virtual, resident = (int(word) * resource.getpagesize() for word in file.read().split()[:2])
        yield _gauge("process_resident_memory_bytes", "Memory in use.", resident)
        yield _gauge("process_virtual_memory_bytes", "Address space in use.", virtual)
        yield _gauge("process_open_fds", "Files open.", len(os.listdir("/proc/self/fd")))
    version = (("implementation", platform.python_implementation()), ("version", platform.python_version()))
    yield MetricFamily("python_info", MetricType.GAUGE, "The interpreter.", [Series(version, 1)])


def _gauge(name: str, text: str, value: float) -> MetricFamily:
    return _one(name, MetricType.GAUGE, text, value)


def _one(name: str, kind: str, text: str, value: float) -> MetricFamily:
    return MetricFamily(name, kind, text, [Series((), value)])
