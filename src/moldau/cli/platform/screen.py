"""How the services of the platform are shown: a table that changes in place on a terminal, else a line per change."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from moldau.server.platform.services import SERVICES
from moldau.server.platform.status_file import ServiceStatus

__all__ = ["HEADINGS", "PlatformScreen", "memory_mb", "status_rows"]

STYLES = {"running": "green", "failed": "bold red", "restarting": "yellow", "stopping": "yellow"}
HEADINGS = ("Service", "State", "Address", "Pid", "Memory", "Restarts", "Note")


def status_rows(statuses: Mapping[str, ServiceStatus]) -> list[tuple[str, ...]]:
    """A row for each service, in the order of `HEADINGS`."""
    return [
        (
            SERVICES[name].title if name in SERVICES else name,
            status.phase,
            status.address if name.partition(" ")[0] == "broker" else f"http://{status.address}",
            str(status.process.pid) if status.process else "",
            f"{memory_mb(status.process.pid):,} MB" if status.process else "",
            str(status.restarts or ""),
            status.note,
        )
        for name, status in statuses.items()
    ]


def memory_mb(pid: int) -> int:
    """The resident memory of a process, 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS")), 0)
    except OSError:
        return 0


class PlatformScreen:
    """The display of `moldau up` in the foreground."""

    def __init__(self, hint: str) -> None:
        self._hint = hint
        self._started_s = time.monotonic()
        self._shown: dict[str, ServiceStatus] = {}
        self._live = Live(console=Console(), auto_refresh=False) if sys.stdout.isatty() else None
        if self._live is not None:
            self._live.start()

    def show(self, statuses: dict[str, ServiceStatus]) -> None:
        if self._live is not None:
            self._live.update(self._picture(statuses), refresh=True)
            return
        for name, status in statuses.items():
            before = self._shown.get(name)
            if before is None or (before.phase, before.note) != (status.phase, status.note):
                note = f": {status.note}" if status.note else ""
                with contextlib.suppress(OSError):  # the output may be a file on a disk that is full
                    print(f"{name}: {status.phase} ({status.address}){note}", flush=True)
        self._shown = dict(statuses)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()

    def _picture(self, statuses: Mapping[str, ServiceStatus]) -> RenderableType:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for heading in HEADINGS:
            table.add_column(heading, header_style="dim", overflow="fold")
        for row in status_rows(statuses):
            name, phase, *rest = row
            table.add_row(name, Text(phase, style=STYLES.get(phase, "dim")), *rest)
        return Group(table, Text(self._hint, style="dim"))
