"""The supervisor: what it waits out, what it asks the handler about, and how it ends. No Spark, no broker."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.unit.pipeline.runtime.identities import identity_in

from moldau.core.errors import MoldauError
from moldau.pipeline.runtime.errors import ClusterUnreachableError, MissingTopicError, StreamsError, TakenOverError
from moldau.pipeline.runtime.folder import PipelineFolder
from moldau.pipeline.runtime.metrics import PipelineMetrics
from moldau.pipeline.runtime.pipeline import Pace, Parts, Pipeline, Response
from moldau.pipeline.runtime.source import FrameSource, Offsets
from moldau.pipeline.runtime.states import State
from moldau.pipeline.runtime.stores.database import StoreDatabase
from moldau.pipeline.runtime.stores.views import StoreViews

WAIT_S = 10
QUICK = Pace(watch_s=0.01, first_pause_s=0.01, silent_end_s=0.01)


class FakeSource(FrameSource):
    """Tells what it was told."""

    def __init__(self) -> None:
        super().__init__({})
        self.take_over: Callable[[], None] = lambda: None
        self.closed_at: list[Offsets] = []

    def start(self, on_taken_over: Callable[[], None]) -> None:
        self.take_over = on_taken_over

    def close(self, offsets: Offsets) -> None:
        self.closed_at.append(offsets)


@dataclass
class FakeEnvironment:
    """Has everything in it, or nothing but a complaint."""

    complaint: MoldauError | None = None
    closed: int = 0

    def prepare(self) -> dict[str, int]:
        if self.complaint is not None:
            raise self.complaint
        return {"in": 1}

    def answers(self) -> bool:
        return False

    def outage(self) -> str | None:
        return "no broker answers at localhost:9092"

    def close(self) -> None:
        self.closed += 1


class FakeQuery:
    def __init__(self, failure: BaseException | str | None) -> None:
        self._failure = failure
        self.is_active = failure is None

    def failure(self) -> BaseException | str | None:
        return self._failure

    def progress(self) -> Mapping[str, Any] | None:
        return None


@dataclass
class FakeEngine:
    """Keeps a Spark that is its own, or spark-submit's."""

    is_lost: bool = False

    def has_lost_spark_for_good(self) -> bool:
        return self.is_lost


@dataclass
class FakeRuns:
    """Makes runs that live as told: each start takes the next of `lives`, None being a good one."""

    lives: list[BaseException | str | None] = field(default_factory=list)
    starts: int = 0
    closed: int = 0
    is_good: threading.Event = field(default_factory=threading.Event)
    may_stop: threading.Event = field(default_factory=threading.Event)
    """An end waits for it."""


class FakeRun:
    compiled = None
    checkpoint = None
    executors = None

    def __init__(self, runs: FakeRuns) -> None:
        self._runs = runs

    def start(self) -> FakeQuery:
        self._runs.starts += 1
        failure = self._runs.lives.pop(0) if self._runs.lives else None
        if failure is None:
            self._runs.is_good.set()
        return FakeQuery(failure)

    def stop(self, timeout_s: float) -> None:
        self._runs.may_stop.wait(WAIT_S)

    def give_up(self) -> None:
        self._runs.may_stop.set()

    def close(self) -> None:
        self._runs.closed += 1

    def refresh_if_idle(self) -> None: ...

    def note_progress(self, progress: object) -> None: ...


@dataclass
class World:
    """A pipeline and the fakes it is made of."""

    folder: Path
    pace: Pace = QUICK
    source: FakeSource = field(default_factory=FakeSource)
    environment: FakeEnvironment = field(default_factory=FakeEnvironment)
    engine: FakeEngine = field(default_factory=FakeEngine)
    runs: FakeRuns = field(default_factory=FakeRuns)

    def __post_init__(self) -> None:
        self.runs.may_stop.set()

    def pipeline(self) -> Pipeline:
        identity = identity_in(self.folder)
        folder = PipelineFolder(identity)
        return Pipeline(
            Parts(
                identity=identity,
                folder=folder,
                environment=self.environment,
                source=self.source,
                stores=StoreDatabase(folder.stores_file, {}),
                views=StoreViews(folder.stores_file, {}, identity.name),
                metrics=PipelineMetrics(),
                engine=self.engine,
                new_run=lambda: FakeRun(self.runs),
                pace=self.pace,
            )
        )


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def pipeline(world: World) -> Iterator[Pipeline]:
    made = world.pipeline()
    yield made
    world.runs.may_stop.set()
    made.stop(WAIT_S)


def ended(pipeline: Pipeline) -> State:
    assert pipeline.states.wait_for(lambda state: state.is_final, WAIT_S)
    return pipeline.states.state


def test_it_runs_until_it_is_stopped(pipeline: Pipeline) -> None:
    pipeline.start()
    assert pipeline.states.wait_for(lambda state: state is State.RUNNING, WAIT_S)

    assert pipeline.stop(WAIT_S)

    assert pipeline.states.state is State.NOT_RUNNING
    assert pipeline.failure is None


def test_a_spark_that_does_not_come_back_is_not_waited_for(world: World, pipeline: Pipeline) -> None:
    world.engine.is_lost = True
    world.runs.lives.append(ConnectionRefusedError("Connection refused"))
    pipeline.start()

    assert ended(pipeline) is State.ERROR
    assert str(pipeline.failure).startswith("spark-submit has ended Spark")
    assert world.runs.starts == 1


def test_one_that_never_started_is_stopped_as_well(pipeline: Pipeline) -> None:
    assert pipeline.stop(WAIT_S)
    assert pipeline.stop(WAIT_S)
    assert pipeline.states.state is State.NOT_RUNNING


@pytest.mark.parametrize(
    "trouble",
    [
        ClusterUnreachableError("nobody answers"),
        ConnectionRefusedError("Connection refused"),
        "org.apache.kafka.common.errors.TimeoutException: Timed out",
    ],
)
def test_troubles_that_pass_are_waited_out(world: World, pipeline: Pipeline, trouble: BaseException | str) -> None:
    pipeline.handler = lambda error: pytest.fail("nobody is to be asked")
    world.runs.lives = [trouble, trouble]
    pipeline.start()

    assert world.runs.is_good.wait(WAIT_S)
    assert pipeline.metrics().restarts == 2
    assert pipeline.states.wait_for(lambda state: state is State.RUNNING, WAIT_S)


def test_other_failures_end_it(world: World, pipeline: Pipeline) -> None:
    world.runs.lives = [StreamsError("a bad record")]
    pipeline.start()

    assert ended(pipeline) is State.ERROR
    assert str(pipeline.failure) == "a bad record"
    assert world.runs.starts == 1


def test_the_handler_may_have_it_tried_again(world: World, pipeline: Pipeline) -> None:
    answers = [Response.REPLACE_THREAD, Response.REPLACE_THREAD, Response.SHUTDOWN_APPLICATION]
    heard: list[str] = []

    def handle(error: MoldauError) -> Response:
        heard.append(str(error))
        return answers.pop(0)

    pipeline.handler = handle
    world.runs.lives = [StreamsError(str(number)) for number in range(3)]
    pipeline.start()

    assert ended(pipeline) is State.ERROR
    assert heard == ["0", "1", "2"]


def test_a_handler_that_fails_ends_it(world: World, pipeline: Pipeline) -> None:
    pipeline.handler = lambda error: 1 / 0  # type: ignore[assignment, return-value]
    world.runs.lives = [StreamsError("a bad record")]
    pipeline.start()

    assert ended(pipeline) is State.ERROR
    assert str(pipeline.failure) == "a bad record"


def test_one_that_was_driven_out_ends_without_asking(world: World, pipeline: Pipeline) -> None:
    pipeline.handler = lambda error: Response.REPLACE_THREAD
    pipeline.start()
    assert world.runs.is_good.wait(WAIT_S)

    world.source.take_over()

    assert ended(pipeline) is State.ERROR
    assert isinstance(pipeline.failure, TakenOverError)


def test_what_is_wrong_before_the_start_is_raised(world: World, pipeline: Pipeline) -> None:
    world.environment.complaint = MissingTopicError("no such topic")

    with pytest.raises(MissingTopicError):
        pipeline.start()
    assert pipeline.states.state is State.CREATED
    assert world.environment.closed == 1
    folder = PipelineFolder(identity_in(world.folder))
    folder.acquire()
    folder.release()


def test_a_pause_is_ended_by_stopping(tmp_path: Path) -> None:
    world = World(tmp_path, pace=Pace(watch_s=0.01, first_pause_s=60.0))
    pipeline = world.pipeline()
    world.runs.lives = [ClusterUnreachableError("nobody answers")]
    pipeline.start()
    assert pipeline.states.wait_for(lambda state: state is State.RUNNING, WAIT_S)

    assert pipeline.stop(WAIT_S)


def test_every_end_closes_the_runs_the_source_and_the_connections(world: World, pipeline: Pipeline) -> None:
    world.runs.lives = [ClusterUnreachableError("nobody answers"), StreamsError("a bad record")]
    pipeline.start()

    assert ended(pipeline) is State.ERROR
    assert world.runs.closed == 2
    assert world.source.closed_at == [{}]
    assert world.environment.closed == 1


def test_an_end_that_takes_long_says_what_it_waits_for(
    world: World, pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline.start()
    assert world.runs.is_good.wait(WAIT_S)
    world.runs.may_stop.clear()

    with caplog.at_level(logging.WARNING, "moldau.streams"):
        assert pipeline.stop(0.05)

    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("app: stopping waits up to 0.05 s for the running batch")
    assert "; no broker answers at localhost:9092. Another Ctrl-C or SIGTERM ends it at once" in said


def test_an_end_that_is_quick_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pipeline = World(tmp_path, pace=Pace(watch_s=0.01, silent_end_s=WAIT_S)).pipeline()
    pipeline.start()

    with caplog.at_level(logging.WARNING, "moldau.streams"):
        assert pipeline.stop(WAIT_S)

    assert caplog.records == []
