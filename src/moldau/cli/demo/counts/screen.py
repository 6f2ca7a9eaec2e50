"""The display of the demo, while it runs and at its end. Only renders the numbers it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

__all__ = ["Moment", "Summary", "line", "picture", "summary_table"]

BAR_WIDTH = 36


@dataclass(frozen=True, slots=True)
class Moment:
    """The state of the running pipeline at one time."""

    elapsed_s: float
    sent: int
    input_per_s: float
    output_per_s: float
    lag: int
    window_age_s: float | None
    """How long ago the displayed window began; None if there is none yet."""
    top: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Summary:
    """The totals of the whole run."""

    sent: int
    counted: int
    changes: int
    windows: int
    seconds: float
    first_output_s: float
    catch_up_s: float


def picture(moment: Moment) -> RenderableType:
    """The live view."""
    numbers = Table.grid(padding=(0, 3))
    for _ in range(4):
        numbers.add_column(justify="right")
    numbers.add_row(*(Text(name, style="dim") for name in ("input/s", "output/s", "lag", "sent")))
    numbers.add_row(
        Text(f"{moment.input_per_s:,.0f}", style="bold cyan"),
        Text(f"{moment.output_per_s:,.0f}", style="bold green"),
        Text(f"{moment.lag:,}", style="bold yellow"),
        Text(f"{moment.sent:,}"),
    )
    return Panel(
        Group(numbers, Text(), _bars(moment)),
        title=f"visits per page, counted on Spark · {moment.elapsed_s:.0f} s",
        title_align="left",
        border_style="blue",
        width=78,
    )


def _bars(moment: Moment) -> RenderableType:
    if not moment.top or moment.window_age_s is None:
        return Text("waiting for the first counts …", style="dim")
    most = max(count for _, count in moment.top)
    table = Table.grid(padding=(0, 2))
    table.add_column(width=12)
    table.add_column(justify="right", width=8)
    table.add_column(width=BAR_WIDTH)
    for page, count in moment.top:
        table.add_row(page, f"{count:,}", ProgressBar(total=most, completed=count, width=BAR_WIDTH))
    began = f"top pages of the window that began {moment.window_age_s:.0f} s ago"
    return Group(Text(began, style="dim"), table)


def line(moment: Moment) -> str:
    """The live view as one line, for logs."""
    top = ", ".join(f"{page} {count:,}" for page, count in moment.top[:3]) or "no counts yet"
    return (
        f"{moment.elapsed_s:4.0f} s  in {moment.input_per_s:,.0f}/s  out {moment.output_per_s:,.0f}/s  "
        f"lag {moment.lag:,}  top: {top}"
    )


def summary_table(summary: Summary) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(justify="right")
    rows = (
        ("visits sent", f"{summary.sent:,}"),
        ("visits counted", f"{summary.counted:,}"),
        ("changes written", f"{summary.changes:,}"),
        ("windows", f"{summary.windows:,}"),
        ("seconds of traffic", f"{summary.seconds:.1f}"),
        ("first count after the pipeline started", f"{summary.first_output_s:.1f} s"),
        ("caught up after the traffic ended", f"{summary.catch_up_s:.1f} s"),
    )
    for name, value in rows:
        table.add_row(name, value)
    return table
