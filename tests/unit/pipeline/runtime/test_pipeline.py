"""The supervisor: what it waits out, what it asks the handler about, and how it ends. No Spark, no broker."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from moldau.core.errors import MoldauError
from moldau.pipeline.runtime import pipeline as module
from moldau.pipeline.runtime.errors import ClusterUnreachableError, MissingTopicError, StreamsError, TakenOverError
from moldau.pipeline.runtime.pipeline import Pipeline, Response
from moldau.pipeline.runtime.settings import StreamsSettings
from moldau.pipeline.runtime.states import State
from moldau.streams import Consumed, StreamsBuilder, StringSerde

WAIT_S = 10


class FakeCluster:
    """A cluster with everything in it, or with nothing but a complaint."""

    complaint: MoldauError | None = None

    def __init__(self, settings: StreamsSettings) -> None:
        self.admin = None

    def prepared(self, topology: object) -> dict[str, int]:
        if self.complaint is not None:
            raise self.complaint
        return {"in": 1}


class FakePresence:
    def __init__(self, settings: object, topics: object, pattern: object, on_taken_over: Any) -> None:
        FakePresence.take_over = staticmethod(on_taken_over)  # type: ignore[assignment]

    def take_over(self) -> None:
        raise AssertionError

    def start(self) -> None: ...

    def close(self) -> None: ...


class FakeQuery:
    def __init__(self, failure: BaseException | str | None) -> None:
        self._failure = failure
        self.is_active = failure is None

    def failure(self) -> BaseException | str | None:
        return self._failure

    def progress(self) -> Mapping[str, Any] | None:
        return None


class FakeEngine:
    """Keeps a Spark that is its own, or spark-submit's."""

    is_lost = False

    def has_lost_spark_for_good(self) -> bool:
        return self.is_lost


class FakeRun:
    """Lives as told: each start takes the next of `lives`, None being a good one."""

    lives: ClassVar[list[BaseException | str | None]] = []
    starts = 0
    at_start: MoldauError | None = None
    is_good = threading.Event()

    def __init__(self, *parts: object, **more: object) -> None:
        self.query: FakeQuery | None = None
        self.compiled = None
        self.executors = None
        self.checkpoint = None

    def start(self) -> None:
        type(self).starts += 1
        if self.at_start is not None:
            raise self.at_start
        failure = self.lives.pop(0) if self.lives else None
        self.query = FakeQuery(failure)
        if failure is None:
            self.is_good.set()

    def stop(self, timeout_s: float) -> None: ...

    def close(self) -> None: ...

    def refresh_if_idle(self) -> None: ...

    def progressed(self, progress: object) -> None: ...


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Cluster", FakeCluster)
    monkeypatch.setattr(module, "GroupPresence", FakePresence)
    monkeypatch.setattr(module, "Run", FakeRun)
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(module, "WATCH_S", 0.01)
    monkeypatch.setattr(FakeRun, "lives", [])
    monkeypatch.setattr(FakeRun, "starts", 0)
    monkeypatch.setattr(FakeRun, "is_good", threading.Event())


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    builder = StreamsBuilder()
    builder.stream("in", Consumed.with_(StringSerde(), StringSerde())).to("out")
    config = {"application.id": "app", "bootstrap.servers": "localhost:9092", "state.dir": str(tmp_path)}
    made = Pipeline(builder.build(), StreamsSettings.of(config), FakeEngine())  # type: ignore[arg-type]
    yield made
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


def test_a_spark_that_does_not_come_back_is_not_waited_for(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeEngine, "is_lost", True)
    FakeRun.lives.append(ConnectionRefusedError("Connection refused"))
    pipeline.start()

    assert ended(pipeline) is State.ERROR
    assert str(pipeline.failure).startswith("spark-submit has ended Spark")
    assert FakeRun.starts == 1


def test_one_that_never_started_is_stopped_as_well(pipeline: Pipeline) -> None:
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
def test_troubles_that_pass_are_waited_out(pipeline: Pipeline, trouble: BaseException | str) -> None:
    pipeline.handler = lambda error: pytest.fail("nobody is to be asked")
    FakeRun.lives = [trouble, trouble]
    pipeline.start()

    assert FakeRun.is_good.wait(WAIT_S)
    assert pipeline.metrics().restarts == 2
    assert pipeline.states.wait_for(lambda state: state is State.RUNNING, WAIT_S)


def test_other_failures_end_it(pipeline: Pipeline) -> None:
    FakeRun.lives = [StreamsError("a bad record")]
    pipeline.start()

    assert ended(pipeline) is State.ERROR
    assert str(pipeline.failure) == "a bad record"
    assert FakeRun.starts == 1


def test_the_handler_may_have_it_tried_again(pipeline: Pipeline) -> None:
    answers = [Response.REPLACE_THREAD, Response.REPLACE_THREAD, Response.SHUTDOWN_APPLICATION]
    heard: list[str] = []

    def handle(error: MoldauError) -> Response:
        heard.append(str(error))
        return answers.pop(0)

    pipeline.handler = handle
    FakeRun.lives = [StreamsError(str(number)) for number in range(3)]
    pipeline.start()

    assert ended(pipeline) is State.ERROR
    assert heard == ["0", "1", "2"]


def test_a_handler_that_fails_ends_it(pipeline: Pipeline) -> None:
    pipeline.handler = lambda error: 1 / 0  # type: ignore[assignment, return-value]
    FakeRun.lives = [StreamsError("a bad record")]
    pipeline.start()

    assert ended(pipeline) is State.ERROR
    assert str(pipeline.failure) == "a bad record"


def test_one_that_was_driven_out_ends_without_asking(pipeline: Pipeline) -> None:
    pipeline.handler = lambda error: Response.REPLACE_THREAD
    pipeline.start()
    assert FakeRun.is_good.wait(WAIT_S)

    FakePresence.take_over()  # type: ignore[call-arg]

    assert ended(pipeline) is State.ERROR
    assert isinstance(pipeline.failure, TakenOverError)


def test_what_is_wrong_before_the_start_is_raised(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeCluster, "complaint", MissingTopicError("no such topic"))

    with pytest.raises(MissingTopicError):
        pipeline.start()
    assert pipeline.states.state is State.CREATED
    pipeline.folder.acquire()
    pipeline.folder.release()


def test_a_pause_is_ended_by_stopping(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 60.0)
    FakeRun.lives = [ClusterUnreachableError("nobody answers")]
    pipeline.start()
    assert pipeline.states.wait_for(lambda state: state is State.RUNNING, WAIT_S)

    assert pipeline.stop(WAIT_S)
