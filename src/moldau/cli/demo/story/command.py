"""`moldau demo` and `moldau demo etl`: start the platform, let orders flow through it, show it, and check the results.

Start at `run_story`.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from moldau.cli.demo.broker import created_topics
from moldau.cli.demo.story.ending import print_ending
from moldau.cli.demo.story.looks import FilesLook, Found, TableLook, TopicLook, Watch
from moldau.cli.demo.story.pipelines import ETL_STATEMENTS, FILES_FOLDER, STORY_STATEMENTS, Pipelines
from moldau.cli.demo.story.platform import Platform
from moldau.cli.demo.story.program import ORDERS, SALES
from moldau.cli.demo.story.screen import Bar, Display, Moment, Step, Summary, summary_table
from moldau.cli.demo.story.shop import TABLE, Shop
from moldau.cli.tool import Terminated, ToolError
from moldau.core.errors import MoldauError

__all__ = ["run_etl", "run_story"]

PARTITIONS: Final = 2
SERVICES: Final = ("registry", "connect", "ksql")
PROGRAM: Final = "moldau.cli.demo.story.program:topology"
LOOK_S: Final = 0.1
FAILURES_EVERY_S: Final = 1.0
START_S: Final = 120.0
FIRST_RESULT_S: Final = 180.0
CATCH_UP_S: Final = 120.0


@dataclass(frozen=True, kw_only=True)
class Plot:
    """What the two demos do differently."""

    title: str
    statements: str
    steps: Mapping[str, str]
    """Where orders come to, and what brings them there."""
    shows: str

    @property
    def has_program(self) -> bool:
        return "table" in self.steps


STORY: Final = Plot(
    title="from a database through Spark to a table and to files",
    statements=STORY_STATEMENTS,
    steps={"topic": "Connect", "table": "ksql", "files": "Streams, Connect"},
    shows="orders per country, asked over HTTP",
)
ETL: Final = Plot(
    title="from a database through Spark to Parquet files",
    statements=ETL_STATEMENTS,
    steps={"topic": "Connect", "files": "ksql, Connect"},
    shows="orders per product, read from the files",
)


def run_story(options: argparse.Namespace) -> int:
    return _run(STORY, options)


def run_etl(options: argparse.Namespace) -> int:
    return _run(ETL, options)


def _run(plot: Plot, options: argparse.Namespace) -> int:
    console = Console()
    console.print(f"[bold]moldau demo[/]: {plot.title}\n", soft_wrap=True)
    signal.signal(signal.SIGHUP, _end_as_terminated)  # the terminal was closed
    try:
        with ExitStack() as ending:
            return _play(plot, options, console, ending)
    except KeyboardInterrupt:
        print("moldau demo: ended early; nothing is left behind", file=sys.stderr)
        raise


def _play(plot: Plot, options: argparse.Namespace, console: Console, ending: ExitStack) -> int:
    fate = _Fate()
    folder = ending.enter_context(_folder(options.data, fate))
    platform = Platform(folder, (*SERVICES, "rest") if options.keep else SERVICES, must_outlive=options.keep)
    ending.enter_context(_ended_unless_kept(platform, fate))
    _prepare(platform, console)
    shop = Shop(options.database, folder, options.rate)
    ending.callback(lambda: shop.close(drop=not fate.is_kept))
    demo = _Demo(plot, platform, shop)
    ending.callback(demo.close)
    with Display(console) as display:
        summary = demo.play(options.seconds, display)
    problems = demo.problems()
    if options.keep and not problems:
        platform.end_program()
        fate.is_kept = True
    console.print(summary_table(summary))
    print_ending(console, problems, platform if fate.is_kept else None, shop.url, has_table=plot.has_program)
    return 1 if problems else 0


def _end_as_terminated(*_: object) -> None:
    raise Terminated


def _prepare(platform: Platform, console: Console) -> None:
    """The first time there is something to fetch and to note."""
    from moldau.cli.streams.preparing import is_prepared

    if is_prepared():
        return
    with console.status("preparing Spark, only this time …") as status:
        for step in platform.prepare():
            if console.is_terminal:
                status.update(f"preparing Spark, only this time: {step}")


@dataclass
class _Fate:
    is_kept: bool = False
    """Whether platform and folder stay when the demo ends."""


@contextmanager
def _folder(data: Path | None, fate: _Fate) -> Iterator[Path]:
    """Where everything is kept; a temporary folder unless the user names one. Only that one is removed."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="moldau-")) if data is None else _new_folder(data)
    except OSError as error:
        raise ToolError(
            f"{error.filename or 'the temporary folder'}: {error.strerror}; name another with --data"
        ) from None
    if data is not None:
        yield folder
        return
    must_stay = False
    try:
        yield folder
    except MoldauError as error:
        must_stay = True
        raise ToolError(
            f"{error}\nThe logs are in {folder}/logs; remove that folder when you have read them."
        ) from None
    finally:
        if not (fate.is_kept or must_stay):
            shutil.rmtree(folder, ignore_errors=True)


def _new_folder(data: Path) -> Path:
    data.mkdir(parents=True, exist_ok=True)
    if any(data.iterdir()):
        raise ToolError(f"{data} is not empty; name a new folder with --data")
    return data.absolute()


@contextmanager
def _ended_unless_kept(platform: Platform, fate: _Fate) -> Iterator[None]:
    try:
        yield
    finally:
        if not fate.is_kept:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)  # it takes less than a second now
            platform.end()


class _Demo:
    """The parts of a demo under way."""

    def __init__(self, plot: Plot, platform: Platform, shop: Shop) -> None:
        self._plot = plot
        self._platform = platform
        self._shop = shop
        self._display: Display | None = None
        self._pipelines = Pipelines(platform)
        self._began_s = time.monotonic()
        self._checked_s = self._began_s
        self._watches: dict[str, Watch] = {}

    def play(self, seconds: float, display: Display) -> Summary:
        """From nothing to results that are complete."""
        self._display = display
        shop, platform, pipelines = self._shop, self._platform, self._pipelines
        shop.make()
        platform.start()
        self._until(self._runs("broker"), "starting the broker", START_S)
        created_topics(platform.bootstrap, PARTITIONS, ORDERS, SALES)
        self._until(self._runs("registry"), "starting the schema registry", START_S)
        if self._plot.has_program:
            platform.start_program(PROGRAM)
        shop.start()
        self._watch()
        self._until(self._runs("connect"), "starting Connect", START_S)
        pipelines.read_orders(shop.url)
        pipelines.write_files()
        self._until(self._runs("ksql"), "starting ksql", START_S)
        self._until(pipelines.has_schema, "Connect reads the first orders (starting Spark)", FIRST_RESULT_S)
        pipelines.run_sql(self._plot.statements)
        results = [watch for name, watch in self._watches.items() if name != "topic"]
        self._until(lambda: all(one.found.orders for one in results), "waiting for results", FIRST_RESULT_S)
        first_result_s = time.monotonic() - self._began_s
        self._for(seconds, "orders are placed, results follow")
        shop.stop()
        stopped_s = time.monotonic()
        self._until(lambda: not self.problems(), "the last orders are on their way", CATCH_UP_S, is_needed=False)
        return Summary(self._steps(is_over=True), first_result_s, time.monotonic() - stopped_s)

    def problems(self) -> list[str]:
        """What differs between the results and the database."""
        by_product, by_country = self._shop.totals("product"), self._shop.totals("country")
        truths = {"topic": by_product, "table": by_country, "files": by_product}
        return [
            f"{_NAMES[name]}: {watch.found.orders:,} orders instead of {self._shop.inserted:,}"
            if watch.found.orders != self._shop.inserted
            else f"{_NAMES[name]}: the amounts differ from those in the database"
            for name, watch in self._watches.items()
            if watch.found.totals != truths[name]
        ]

    def close(self) -> None:
        for watch in self._watches.values():
            watch.stop()

    def _watch(self) -> None:
        topic = TopicLook(self._platform.bootstrap, self._platform.url("registry"), PARTITIONS)
        self._watches = {"topic": Watch(topic, topic.close)}
        if self._plot.has_program:
            self._watches["table"] = Watch(TableLook(self._pipelines))
        self._watches["files"] = Watch(FilesLook(self._platform.folder / FILES_FOLDER))
        for watch in self._watches.values():
            watch.start()

    def _runs(self, service: str) -> Callable[[], bool]:
        def is_running() -> bool:
            statuses = self._platform.statuses()
            return service in statuses and statuses[service].phase == "running"

        return is_running

    def _for(self, seconds: float, doing: str) -> None:
        deadline = time.monotonic() + seconds
        self._until(lambda: time.monotonic() >= deadline, doing, seconds, is_needed=False)

    def _until(self, is_done: Callable[[], bool], doing: str, limit_s: float, *, is_needed: bool = True) -> None:
        """Keep the picture fresh until something holds."""
        deadline = time.monotonic() + limit_s
        while not is_done():
            if time.monotonic() >= deadline:
                if is_needed:
                    raise ToolError(f"{doing}: not done after {limit_s:.0f} s")
                return
            self._check_health()
            if self._display is not None:
                self._display.show(self._moment(doing))
            time.sleep(LOOK_S)

    def _check_health(self) -> None:
        """Raise `ToolError` as soon as something has failed, instead of waiting for what will not come."""
        self._platform.statuses()
        now_s = time.monotonic()
        if self._shop.failure is not None:
            raise ToolError(self._shop.failure)
        if self._watches and now_s - self._checked_s >= FAILURES_EVERY_S:
            self._checked_s = now_s
            failure = self._pipelines.failure()
            if failure is not None:
                raise ToolError(failure)

    def _moment(self, doing: str) -> Moment:
        name = "table" if self._plot.has_program else "files"
        found = self._watches[name].found if name in self._watches else Found()
        by_orders = sorted(found.totals.items(), key=lambda one: -one[1][0])
        return Moment(
            elapsed_s=time.monotonic() - self._began_s,
            doing=doing,
            steps=self._steps(),
            title=f"{self._plot.shows} · {found.note}",
            bars=[Bar(name, orders, cents) for name, (orders, cents) in by_orders],
        )

    def _steps(self, *, is_over: bool = False) -> Sequence[Step]:
        steps = [Step(f"{self._shop.kind} table {TABLE}", "the shop", self._shop.inserted, self._shop.rate, None)]
        for name, by in self._plot.steps.items():
            watch = self._watches.get(name)
            if watch is None:
                steps.append(Step(_NAMES[name], by, 0, 0.0, None))
            else:
                age_ms = watch.usual_age_ms() if is_over else watch.age_ms()
                steps.append(Step(_NAMES[name], by, watch.found.orders, watch.rate(), age_ms, watch.found.note))
        return steps


_NAMES: Final = {
    "topic": f"topic {ORDERS}, in Avro",
    "table": "table orders_per_country",
    "files": f"Parquet files of {SALES}",
}
