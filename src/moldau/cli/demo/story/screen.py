"""The display of the demo, while it runs and at its end. Only renders what it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

__all__ = ["Bar", "Display", "Moment", "Step", "Summary", "line", "picture", "summary_table"]

BAR_WIDTH: Final = 30
WIDTH: Final = 80
LINE_EVERY_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Step:
    """One place that orders come to."""

    name: str
    by: str
    """Who brings them there."""
    orders: int
    per_s: float
    age_ms: float | None
    """How long after its INSERT the newest order was seen here; None where orders begin, and before the first."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    name: str
    orders: int
    cents: int


@dataclass(frozen=True, slots=True)
class Moment:
    """What is known at one time."""

    elapsed_s: float
    doing: str
    """What is waited for, or going on."""
    steps: Sequence[Step]
    title: str
    bars: Sequence[Bar]


@dataclass(frozen=True, slots=True)
class Summary:
    steps: Sequence[Step]
    first_result_s: float
    caught_up_s: float


def picture(moment: Moment) -> RenderableType:
    """The live view."""
    return Panel(
        Group(_steps(moment.steps), Text(), _bars(moment)),
        title=f"moldau demo · {moment.elapsed_s:.0f} s",
        title_align="left",
        subtitle=f"{moment.doing} · Ctrl-C ends it",
        subtitle_align="left",
        border_style="blue",
        width=WIDTH,
    )


def _steps(steps: Sequence[Step]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(width=28)
    table.add_column(width=17, style="dim")
    for _ in range(3):
        table.add_column(justify="right", width=7)
    table.add_row(*(Text(name, style="dim") for name in ("", "by", "orders", "per s", "age")))
    for step in steps:
        started = bool(step.orders)
        table.add_row(
            Text(step.name, style="bold" if started else "dim"),
            step.by,
            Text(f"{step.orders:,}" if started else "·", style="cyan"),
            Text(f"{step.per_s:,.0f}" if started else "·", style="green"),
            Text(_seconds(step.age_ms), style="yellow"),
        )
    return table


def _bars(moment: Moment) -> RenderableType:
    if not moment.bars:
        return Text("waiting for the first results …", style="dim")
    most = max(bar.orders for bar in moment.bars)
    table = Table.grid(padding=(0, 2))
    table.add_column(width=10)
    table.add_column(justify="right", width=8)
    table.add_column(justify="right", width=16)
    table.add_column(width=BAR_WIDTH)
    for bar in moment.bars:
        bar_line = ProgressBar(total=most, completed=bar.orders, width=BAR_WIDTH)
        table.add_row(bar.name, f"{bar.orders:,}", _money(bar.cents), bar_line)
    return Group(Text(moment.title, style="dim"), table)


def line(moment: Moment) -> str:
    """The live view as one line, for logs."""
    places = "  ".join(f"{step.name} {step.orders:,}" for step in moment.steps)
    return f"{moment.elapsed_s:4.0f} s  {moment.doing}: {places}"


def summary_table(summary: Summary) -> Table:
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("orders", "after"):
        table.add_column(heading, justify="right", header_style="dim", no_wrap=True)
    table.add_column("", style="dim", no_wrap=True)
    for step in summary.steps:
        table.add_row(step.name, f"{step.orders:,}", _seconds(step.age_ms), step.note)
    table.add_row("first result after", "", f"{summary.first_result_s:.1f} s", "Spark's start included")
    table.add_row("complete, from the last order on", "", f"{summary.caught_up_s:.1f} s", "")
    return table


def _seconds(age_ms: float | None) -> str:
    return "" if age_ms is None else f"{age_ms / 1000:.1f} s"


def _money(cents: int) -> str:
    return f"{cents / 100:,.2f}"


class Display:
    """A picture that changes in place on a terminal; elsewhere a line now and then, and for each new activity."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None
        self._last = ("", -LINE_EVERY_S)

    def __enter__(self) -> Display:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, moment: Moment) -> None:
        if self._live is not None:
            self._live.update(picture(moment))
            return
        doing, last_s = self._last
        if doing != moment.doing or moment.elapsed_s - last_s >= LINE_EVERY_S:
            self._last = (moment.doing, moment.elapsed_s)
            self._console.print(line(moment), highlight=False, soft_wrap=True)
