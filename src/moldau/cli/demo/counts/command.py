"""`moldau demo`: starts a broker, streams visits in, counts them on Spark, shows it live, and sums up.

It needs nothing but Java, asks nothing and leaves nothing behind. Start at `main`.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console
from rich.live import Live

from moldau.cli.command_line import CommandParser
from moldau.cli.demo.broker import created_topics, running_broker
from moldau.cli.demo.counts.pipeline import APPLICATION, INPUT, OUTPUT, visits_per_page
from moldau.cli.demo.counts.results import Results
from moldau.cli.demo.counts.screen import Moment, Summary, line, picture, summary_table
from moldau.cli.demo.counts.traffic import Traffic
from moldau.cli.tool import exit_code_of, interrupts, open_streams
from moldau.client.admin import Admin
from moldau.client.groups import Groups
from moldau.client.waiting import interruptible
from moldau.core.errors import MoldauError

if TYPE_CHECKING:
    from moldau.streams import KafkaStreams

__all__ = ["main", "parser"]

PARTITIONS = 2
REFRESH_S = 0.25
LINE_EVERY_S = 2.0
START_S = 120.0
CATCH_UP_S = 60.0
FIRST_COUNT_S = 120.0
TOP = 8


@dataclass(frozen=True, slots=True)
class Running:
    """The parts of a demo under way."""

    traffic: Traffic
    results: Results
    groups: Groups
    console: Console

    def lag(self) -> int:
        """Visits that the pipeline has not finished with, from what its consumer group has committed."""
        committed = sum(position.offset for position in self.groups.committed(APPLICATION).values())
        return max(0, self.traffic.sent - committed)


_spark_is_starting = threading.Event()


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    open_streams()
    errors = os.dup(sys.stderr.fileno())  # while Java starts, descriptor 2 is the file that catches its words
    console = Console()
    try:
        with interrupts(), _folder(options.keep) as folder:
            return _run(options, folder, console)
    except MoldauError as error:
        print(f"moldau demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        if not _spark_is_starting.is_set():
            return exit_code_of(interrupt)
        _exit_at_once(exit_code_of(interrupt), errors)


def _exit_at_once(code: int, errors: int) -> NoReturn:
    """End without the exit handlers: they would wait until Spark has started, in order to stop it.

    Spark's Java process ends when this one does, and the next start removes its temporary files.
    """
    sys.stdout.flush()
    os.write(errors, b"moldau demo: ended while Spark was starting; nothing is left behind\n")
    os._exit(code)


def _run(options: argparse.Namespace, folder: Path, console: Console) -> int:
    console.print("[bold]moldau demo[/]: visits to a shop, counted in windows on Spark, exactly once\n", soft_wrap=True)
    _prepare(console)
    began = time.monotonic()
    with running_broker(folder) as bootstrap:
        console.print(f"broker on {bootstrap}, ready after {(time.monotonic() - began) * 1000:.0f} ms")
        created_topics(bootstrap, PARTITIONS, INPUT, OUTPUT)
        traffic, results = Traffic(bootstrap, INPUT, options.rate), Results(bootstrap, OUTPUT, PARTITIONS)
        running = Running(traffic, results, Groups(Admin(bootstrap)), console)
        with _flowing(traffic, results), _pipeline(bootstrap, folder, options.window_s * 1000, console):
            summary = _watched(running, options.seconds)
    console.print(summary_table(summary))
    if summary.counted != summary.sent:
        console.print(f"[red]{summary.sent - summary.counted:,} visits are missing from the counts[/]")
        return 1
    console.print(
        "\nEvery visit was counted once. A broker of your own: [bold]moldau server[/]; "
        "pipelines to start from: [bold]examples/streams[/].",
        soft_wrap=True,
    )
    return 0


def _prepare(console: Console) -> None:
    """The first time there is something to fetch and to note."""
    from moldau.cli.streams.preparing import prepare

    with console.status("preparing Spark, only this time …"):
        prepare(lambda text: console.print(f"[dim]· {text}[/]", soft_wrap=True))


@contextmanager
def _pipeline(bootstrap: str, folder: Path, window_ms: int, console: Console) -> Iterator[None]:
    from moldau.streams import KafkaStreams

    config = {
        "application.id": APPLICATION,
        "bootstrap.servers": bootstrap,
        "processing.guarantee": "exactly_once_v2",
        "state.dir": str(folder / "state"),
    }
    streams = KafkaStreams(visits_per_page(window_ms), config)
    began = time.monotonic()
    _start(streams, console)
    console.print(f"pipeline [bold]{APPLICATION}[/] running on Spark after {time.monotonic() - began:.1f} s\n")
    try:
        yield
    finally:
        streams.close()


def _start(streams: KafkaStreams, console: Console) -> None:
    text = "starting Spark …"
    # Outside a terminal Rich may print a line again that an interrupt met halfway.
    status: AbstractContextManager[Any] = console.status(text) if console.is_terminal else nullcontext()
    _spark_is_starting.set()
    if not console.is_terminal:
        print(text, flush=True)
    try:
        with status:
            # In a thread of its own, so that signals stay the demo's and need not wait for Spark.
            interruptible(streams.start)
            interruptible(partial(streams.wait_until_running, START_S))
    except (KeyboardInterrupt, SystemError):  # the second is an interrupt in librdkafka's binding
        logging.disable(logging.CRITICAL)  # the clients of the start would report that the broker is gone
        raise
    _spark_is_starting.clear()


@contextmanager
def _flowing(traffic: Traffic, results: Results) -> Iterator[None]:
    """Records come in while Spark is still starting, as they would anywhere."""
    traffic.start()
    results.start()
    try:
        yield
    finally:
        traffic.stop()
        results.stop()


def _watched(running: Running, seconds: float) -> Summary:
    """Show and count; ends when all that was sent has been counted, or nothing more comes."""
    traffic, results = running.traffic, running.results
    began = time.monotonic()
    with _display(running.console) as show:
        first_s = _shown_until(running, show, began, FIRST_COUNT_S, lambda: results.received > 0)
        _shown_until(running, show, began, seconds, lambda: False)
        traffic.stop()
        catch_up_s = _shown_until(running, show, began, CATCH_UP_S, lambda: results.counted() >= traffic.sent)
    return Summary(
        traffic.sent, results.counted(), results.received, len(results.windows()), traffic.seconds, first_s, catch_up_s
    )


def _shown_until(
    running: Running, show: Callable[[Moment], None], began: float, limit_s: float, is_done: Callable[[], bool]
) -> float:
    """Keep the picture fresh until something holds or the time is up, and give how long that took."""
    started = time.monotonic()
    rates = _Rates(running.traffic, running.results)
    while not is_done() and time.monotonic() - started < limit_s:
        time.sleep(REFRESH_S)
        show(_moment(running, rates, time.monotonic() - began))
    return time.monotonic() - started


class _Rates:
    """Records per second since the last look but a few, so that numbers do not flicker."""

    def __init__(self, traffic: Traffic, results: Results) -> None:
        self._traffic = traffic
        self._results = results
        self._looks = [self._now()]

    def _now(self) -> tuple[float, int, int]:
        return time.monotonic(), self._traffic.sent, self._results.received

    def current(self) -> tuple[float, float]:
        self._looks = [*self._looks[-8:], self._now()]
        (then, sent, received), (now, sent_now, received_now) = self._looks[0], self._looks[-1]
        return (sent_now - sent) / (now - then), (received_now - received) / (now - then)


def _moment(running: Running, rates: _Rates, elapsed_s: float) -> Moment:
    windows = running.results.windows()
    input_per_s, output_per_s = rates.current()
    return Moment(
        elapsed_s=elapsed_s,
        sent=running.traffic.sent,
        input_per_s=input_per_s,
        output_per_s=output_per_s,
        lag=running.lag(),
        window_age_s=time.time() - windows[-1] / 1000 if windows else None,
        top=running.results.top(windows[-1], TOP) if windows else [],
    )


@contextmanager
def _display(console: Console) -> Iterator[Callable[[Moment], None]]:
    """A picture that is redrawn on a terminal; a line now and then where the output goes elsewhere."""
    if console.is_terminal:
        with Live(console=console, refresh_per_second=8) as live:
            yield lambda moment: live.update(picture(moment))
        return
    last_s = -LINE_EVERY_S

    def print_line(moment: Moment) -> None:
        nonlocal last_s
        if moment.elapsed_s - last_s >= LINE_EVERY_S:
            last_s = moment.elapsed_s
            console.print(line(moment), highlight=False, soft_wrap=True)

    yield print_line


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    folder = Path(tempfile.mkdtemp(prefix="moldau-demo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parser() -> CommandParser:
    made = CommandParser(
        prog="moldau demo counts",
        description="A broker, records that stream in, and a windowed count of them on Spark, live in the terminal.",
    )
    made.add_argument(
        "--seconds", type=float, default=1.5, help="how long to watch after the first counts (default: %(default)s)"
    )
    made.add_argument("--rate", type=int, default=5_000, help="records per second (default: %(default)s)")
    made.add_argument("--window-s", type=int, default=5, help="seconds in a window (default: %(default)s)")
    made.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the broker's log and the state here")
    return made


if __name__ == "__main__":
    sys.exit(main())
