"""Metrics of the process and its event loop, under the names of the standard Prometheus collectors."""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import resource
import sys
import time
from collections.abc import Iterator
from functools import cache

from moldau.broker.context import Broker
from moldau.broker.metric_sources.attach import Parts
from moldau.broker.metric_sources.families import gauge, plain, plain_counter
from moldau.broker.metrics import Family, Sample

__all__ = ["families"]

QUANTILES = (0.5, 0.9, 0.99, 1.0)


def families(broker: Broker, parts: Parts) -> Iterator[Family]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield plain_counter("process_cpu_seconds_total", usage.ru_utime + usage.ru_stime, "CPU time used.")
    yield from _linux()
    yield plain("process_max_fds", resource.getrlimit(resource.RLIMIT_NOFILE)[0], "Files that may be open.")
    yield plain_counter(
        "python_gc_collections_total",
        [Sample((("generation", str(index)),), one["collections"]) for index, one in enumerate(gc.get_stats())],
        "Rounds of the garbage collector.",
    )
    yield plain_counter(
        "python_gc_objects_collected_total",
        [Sample((("generation", str(index)),), one["collected"]) for index, one in enumerate(gc.get_stats())],
        "Objects the garbage collector freed.",
    )
    version = (("implementation", platform.python_implementation()), ("version", platform.python_version()))
    yield plain("python_info", [Sample(version, 1)], "The interpreter.")
    yield from _loop(parts)
    yield from _stalls(parts)


def _linux() -> Iterator[Family]:
    if sys.platform != "linux":
        return
    page = resource.getpagesize()
    with open("/proc/self/statm", encoding="ascii") as file:
        virtual, resident = (int(word) * page for word in file.read().split()[:2])
    yield plain("process_resident_memory_bytes", resident, "Memory in use.")
    yield plain("process_virtual_memory_bytes", virtual, "Address space in use.")
    yield plain("process_open_fds", len(os.listdir("/proc/self/fd")), "Files open.")
    yield plain("process_start_time_seconds", _start_time_s(), "When the process began.")
    with open("/proc/self/io", encoding="ascii") as file:
        io = dict(line.split(": ") for line in file.read().splitlines())
    group = "kafka.server:KafkaServer"
    yield gauge(group, "linux-disk-read-bytes", int(io.get("read_bytes", 0)), "Bytes read from disks.")
    yield gauge(group, "linux-disk-write-bytes", int(io.get("write_bytes", 0)), "Bytes written to disks.")


@cache
def _start_time_s() -> float:
    with open("/proc/self/stat", encoding="utf-8") as file:
        started_ticks = int(file.read().rpartition(")")[2].split()[19])
    with open("/proc/uptime", encoding="ascii") as file:
        uptime_s = float(file.read().split()[0])
    return time.time() - uptime_s + started_ticks / os.sysconf("SC_CLK_TCK")


def _stalls(parts: Parts) -> Iterator[Family]:
    watchdog = parts.watchdog
    if watchdog is None:
        return
    now_s = time.monotonic()
    counts, seconds = [], []
    for report in watchdog.reports:
        current = report.current(now_s)
        what = (("what", report.name),)
        counts.append(Sample(what, report.count))
        seconds.append(Sample(what, report.finished_s + (0.0 if current is None else current.seconds)))
    yield plain_counter("moldau_stalls_total", counts, "How often something hung: the event loop, a disk's thread.")
    yield plain_counter("moldau_stalled_seconds_total", seconds, "How long it hung, all together.")


def _loop(parts: Parts) -> Iterator[Family]:
    monitor = parts.loop_monitor
    if monitor is None:
        return
    lags = sorted(monitor.recent_lag_s)
    yield plain(
        "moldau_event_loop_lag_seconds",
        [
            Sample((("quantile", str(q)),), lags[min(len(lags) - 1, int(q * len(lags)))] if lags else 0.0)
            for q in QUANTILES
        ],
        "How late the event loop came to a timer.",
    )
    yield plain("moldau_event_loop_tasks", len(asyncio.all_tasks()), "Tasks on the event loop.")
