"""`moldau doctor`: checks whether everything that moldau and its pipelines need is installed, and how to fix it.

It changes nothing and downloads no jars. Start at `CHECKS`.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import shutil
import socket
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from moldau.cli.command_line import CommandParser
from moldau.cli.sub_commands import command_parser, run_command, screen_for

__all__ = ["CHECKS", "Finding", "main", "parser"]

OLDEST_PYTHON = (3, 11)
WANTED_PYSPARK = "4.3.0"
WANTED_MEMORY_MB = 2048
WANTED_DISK_MB = 2048
WANTED_OPEN_FILES = 4096
CLOCK_NOT_SYNCHRONISED = 5
"""What Linux's `adjtimex` returns, TIME_ERROR."""
OK, WARNING, PROBLEM = "ok", "warning", "problem"


class Finding(NamedTuple):
    """The result of one check."""

    name: str
    state: str
    found: str
    advice: str = ""


def main(argv: Sequence[str]) -> int:
    return run_command(parser(), argv, _doctor)


def _doctor(options: argparse.Namespace) -> int:
    findings = [finding for check in CHECKS for finding in check()]
    screen = screen_for(options)
    screen.table(("Check", "State", "Found", "Advice"), findings)
    problems = sum(finding.state == PROBLEM for finding in findings)
    if problems:
        screen.note(f"{problems} of {len(findings)} checks found a problem.")
    return 1 if problems else 0


def check_python() -> list[Finding]:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return [Finding("Python", PROBLEM, found, "install Python 3.11 or newer")]
    return [Finding("Python", OK, f"{found} in {sys.prefix}")]


def check_java() -> list[Finding]:
    from moldau.pipeline.spark.driver.java import JavaMissingError, find_java

    try:
        java = find_java()
    except JavaMissingError as error:
        return [Finding("Java", PROBLEM, "none that Spark can use", str(error))]
    return [Finding("Java", OK, f"{java.version} ({java.command})")]


def check_packages() -> list[Finding]:
    findings = []
    for name, wanted in (("pyspark", WANTED_PYSPARK), ("pyarrow", ""), ("pandas", ""), ("protobuf", "")):
        try:
            found = version(name)
        except PackageNotFoundError:
            findings.append(Finding(name, PROBLEM, "not installed", f"pip install {name}=={wanted}".rstrip("=")))
            continue
        if wanted and found != wanted:
            findings.append(
                Finding(name, WARNING, found, f"the Kafka connector belongs to {wanted}: pip install {name}=={wanted}")
            )
        else:
            findings.append(Finding(name, OK, found))
    return findings


def check_jars() -> list[Finding]:
    from moldau.pipeline.spark.driver.jars import cache_folder, locked_jars, missing

    lacking = missing()
    found = f"{len(locked_jars()) - len(lacking)} of {len(locked_jars())} in {cache_folder()}"
    if lacking:
        return [Finding("Spark's Kafka jars", WARNING, found, "fetch them: moldau streams prepare")]
    return [Finding("Spark's Kafka jars", OK, f"{found}, checksums right")]


def check_class_archive() -> list[Finding]:
    from moldau.pipeline.spark.driver.class_archive import archive_file
    from moldau.pipeline.spark.driver.java import JavaMissingError

    try:
        archive = archive_file()
    except (JavaMissingError, PackageNotFoundError):
        return []
    if archive.exists():
        return [Finding("Spark's class archive", OK, f"{archive.stat().st_size // 2**20} MB in {archive.parent}")]
    return [Finding("Spark's class archive", WARNING, "none", "make starts twice as fast: moldau streams prepare")]


def check_ports() -> list[Finding]:
    from moldau.server.platform.services import CONSOLE_PORT, METRICS_PORT, SERVICES

    ports = {service.port: service.title for service in SERVICES.values()}
    ports |= {METRICS_PORT: "metrics of the broker", CONSOLE_PORT: "console"}
    return [_port(number, service) for number, service in ports.items()]


def _port(number: int, service: str) -> Finding:
    from moldau.server.platform.ports import owner_of

    name = f"port {number} ({service})"
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex(("127.0.0.1", number)) == 0:
            taken = f"taken by {owner_of(number) or 'a process of another user'}"
            return Finding(name, OK, taken, "fine if that is moldau; else stop it, or give the service another port")
    return Finding(name, OK, "free")


def check_open_files() -> list[Finding]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = f"{soft:,} (up to {hard:,})"
    if hard < WANTED_OPEN_FILES:  # the broker raises its own limit as far as it may
        advice = f"each connection and segment needs one: ulimit -n {WANTED_OPEN_FILES}, or LimitNOFILE in a unit"
        return [Finding("open files", WARNING, found, advice)]
    return [Finding("open files", OK, found)]


def check_clock() -> list[Finding]:
    """Retention, windows and transactions rest on the clock."""
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    if time.time() < Path(__file__).stat().st_mtime:
        return [Finding("clock", PROBLEM, now, "it is earlier than this installation: set the clock")]
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512))
    except (OSError, AttributeError):
        return [Finding("clock", OK, now)]
    if state == CLOCK_NOT_SYNCHRONISED:
        advice = "not synchronised; on a cluster, run a time service: apt-get install chrony"
        return [Finding("clock", WARNING, now, advice)]
    return [Finding("clock", OK, f"{now}, synchronised")]


def check_disk() -> list[Finding]:
    from moldau.server.config import data_folder
    from moldau.streams.settings import default_state_dir

    findings = []
    for name, folder in (
        ("disk for topics", str(data_folder(os.environ))),
        ("disk for state", default_state_dir()),
        ("disk for temporary files", "/tmp"),
    ):
        there = next(path for path in (Path(folder), *Path(folder).parents) if path.exists())
        free_mb = shutil.disk_usage(there).free // 2**20
        state = OK if free_mb >= WANTED_DISK_MB and os.access(there, os.W_OK) else WARNING
        advice = (
            ""
            if state == OK
            else f"make room, or choose another folder (--data, state.dir); {WANTED_DISK_MB:,} MB are a good start"
        )
        findings.append(Finding(name, state, f"{free_mb:,} MB free in {folder}", advice))
    return findings


def check_memory() -> list[Finding]:
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free_mb = int(lines["MemAvailable"].split()[0]) // 1024
    except (OSError, KeyError, ValueError):
        return [Finding("memory", WARNING, "unknown on this system")]
    if free_mb < WANTED_MEMORY_MB:
        advice = f"a pipeline on Spark takes about {WANTED_MEMORY_MB:,} MB; spark.driver.memory=512m takes less"
        return [Finding("memory", WARNING, f"{free_mb:,} MB available", advice)]
    return [Finding("memory", OK, f"{free_mb:,} MB available, {os.cpu_count()} cores")]


CHECKS: tuple[Callable[[], list[Finding]], ...] = (
    check_python,
    check_java,
    check_packages,
    check_jars,
    check_class_archive,
    check_ports,
    check_open_files,
    check_clock,
    check_disk,
    check_memory,
)


def parser() -> CommandParser:
    made = command_parser("doctor", "Look for everything that moldau and its pipelines need.", ["moldau doctor"])
    made.add_argument("-o", "--output", choices=("table", "json"), default="table", help="how to show results")
    return made
