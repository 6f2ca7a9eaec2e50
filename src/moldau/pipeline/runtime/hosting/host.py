"""The pipelines of an engine process: wanted by others, started, watched, restarted and stopped here.

A pipeline is described by a `PipelineSpec`, which is JSON: no code crosses a process boundary. A builder for its kind
(ksql, Connect) makes the pipeline of it. Asking for the same pipeline twice changes nothing, so a process that has lost
its answer, or was killed, asks again. A pipeline that fails is built again after a pause that doubles each time; the
others go on. Start at `PipelineHost`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, runtime_checkable

from moldau.core.errors import MoldauError
from moldau.pipeline.runtime.metrics import MetricsSnapshot
from moldau.pipeline.runtime.states import State, StateMachine

__all__ = [
    "Build",
    "HostState",
    "HostedPipeline",
    "PipelineHost",
    "PipelineSpec",
    "RetryPauses",
    "UnknownPipelineError",
]

KEPT_ERRORS = 10
STOP_S = 60.0

logger = logging.getLogger("moldau.engine")


class UnknownPipelineError(MoldauError):
    """No pipeline of this name, or no builder of this kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSpec:
    """What to run: everything the builder needs, as JSON."""

    name: str
    """Unique in the engine; also names the state folder, so it stays the same across restarts."""
    kind: str
    """Selects the builder."""
    definition: Mapping[str, Any]
    is_paused: bool = False
    """Whether to keep state and offsets, and consume nothing."""


class HostedPipeline(Protocol):
    """What the host does with a pipeline; `moldau.pipeline.runtime.pipeline.Pipeline` is one."""

    @property
    def states(self) -> StateMachine: ...

    @property
    def failure(self) -> MoldauError | None: ...

    def start(self) -> None: ...

    def stop(self, timeout_s: float) -> bool: ...

    def metrics(self) -> MetricsSnapshot: ...

    def explain(self) -> str: ...


@runtime_checkable
class Reporting(Protocol):
    """A pipeline that has more to say about itself, which its service is told with its state."""

    def report(self) -> Mapping[str, Any] | None: ...


class Builder(Protocol):
    """Makes the pipelines of one kind."""

    def build(self, spec: PipelineSpec) -> HostedPipeline:
        """The pipeline, not started; raises `MoldauError`."""

    def delete_state(self, spec: PipelineSpec) -> None:
        """Remove what a stopped pipeline has kept outside its topics: folder, group, progress."""


Build = Mapping[str, Builder]


class HostState(Enum):
    """The state of a pipeline as the host sees it."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    ERROR = "ERROR"
    """It failed, and is started again after a pause."""
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class RetryPauses:
    """How long a failed pipeline waits before it is started again."""

    first_s: float = 5.0
    longest_s: float = 300.0
    healthy_s: float = 60.0
    """After running this long, the next failure waits the first pause again."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure of a pipeline, kept to be shown."""

    timestamp_ms: int
    message: str


@dataclass(slots=True)
class _Life:
    """One pipeline from the request to run it until the request to end it."""

    spec: PipelineSpec
    state: HostState = HostState.STARTING
    pipeline: HostedPipeline | None = None
    failures: deque[Failure] = field(default_factory=lambda: deque(maxlen=KEPT_ERRORS))
    restarts: int = 0
    is_ending: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None


class PipelineHost:
    """Runs pipelines side by side, each watched by a thread of its own. All methods may be called by any thread."""

    def __init__(
        self,
        builders: Build,
        *,
        pauses: RetryPauses | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._builders = builders
        self._pauses = pauses or RetryPauses()
        self._now_ms = now_ms
        self._lives: dict[str, _Life] = {}
        self._lock = threading.Lock()
        """Guards the table of lives."""
        self._change_lock = threading.Lock()
        """Held while a pipeline is replaced or removed, which may take a while; readers do not wait for it."""

    def put(self, spec: PipelineSpec) -> None:
        """Run this pipeline from now on; one of the same name that differs is stopped first.

        Raises `UnknownPipelineError` if nobody here can build its kind.
        """
        if spec.kind not in self._builders:
            raise UnknownPipelineError(f"this engine cannot run pipelines of kind {spec.kind!r}")
        with self._change_lock:
            current = self._lives.get(spec.name)
            if current is not None:
                if current.spec == spec:
                    return
                self._end(current)
            life = _Life(spec, HostState.PAUSED if spec.is_paused else HostState.STARTING)
            with self._lock:
                self._lives[spec.name] = life
            if not spec.is_paused:
                life.thread = threading.Thread(target=self._live, args=(life,), name=f"{spec.name}-life", daemon=True)
                life.thread.start()

    def remove(self, name: str, *, delete_state: bool = False) -> bool:
        """Stop a pipeline and forget it; False if there is none of this name.

        With `delete_state`, its state goes too, also if the pipeline itself was not running.
        """
        with self._change_lock:
            life = self._lives.get(name)
            if life is None:
                return False
            self._end(life)
            with self._lock:
                del self._lives[name]
            if delete_state:
                self._builders[life.spec.kind].delete_state(life.spec)
            return True

    def close(self) -> None:
        """Stop all pipelines, at the same time."""
        with self._change_lock:
            lives = list(self._lives.values())
            enders = [threading.Thread(target=self._end, args=(life,), daemon=True) for life in lives]
            for thread in enders:
                thread.start()
            for thread in enders:
                thread.join(STOP_S)
            with self._lock:
                self._lives.clear()

    def statuses(self) -> list[dict[str, Any]]:
        """What runs here, for the control channel."""
        with self._lock:
            lives = list(self._lives.values())
        return [_status(life) for life in lives]

    def status(self, name: str) -> dict[str, Any]:
        """One pipeline with its metrics, which are asked of the brokers; raises `UnknownPipelineError`."""
        life = self._life(name)
        pipeline = life.pipeline
        found = _status(life)
        if pipeline is not None:
            found |= pipeline.metrics().as_progress()
        return found

    def explain(self, name: str) -> str:
        """How the pipeline runs on Spark; raises `MoldauError` if that is not known yet."""
        pipeline = self._life(name).pipeline
        if pipeline is None:
            raise MoldauError(f"{name} has not started yet; how it runs is known afterwards")
        return pipeline.explain()

    def _life(self, name: str) -> _Life:
        with self._lock:
            life = self._lives.get(name)
        if life is None:
            raise UnknownPipelineError(f"this engine runs no pipeline {name!r}")
        return life

    def _live(self, life: _Life) -> None:
        """Run a pipeline until it is ended; the life's own thread."""
        pause_s = self._pauses.first_s
        while not life.is_ending.is_set():
            began = time.monotonic()
            failure = self._run_once(life)
            if failure is None:
                break
            life.failures.append(Failure(self._now_ms(), failure))
            life.state = HostState.ERROR
            if time.monotonic() - began >= self._pauses.healthy_s:
                pause_s = self._pauses.first_s
            logger.warning("%s failed and is started again in %g s: %s", life.spec.name, pause_s, failure)
            if life.is_ending.wait(pause_s):
                break
            pause_s = min(2 * pause_s, self._pauses.longest_s)
            life.restarts += 1
        life.state = HostState.STOPPED

    def _run_once(self, life: _Life) -> str | None:
        """Build, start and watch the pipeline once; the text of its failure, None if it was ended."""
        life.state = HostState.STARTING
        try:
            pipeline = self._builders[life.spec.kind].build(life.spec)
            pipeline.states.listener = lambda new, _old: self._note(life, new)
            pipeline.start()
        except MoldauError as error:
            return str(error)
        except Exception as error:
            logger.exception("%s could not be started", life.spec.name)
            return f"{type(error).__name__}: {error}"
        life.pipeline = pipeline
        if life.is_ending.is_set():  # it was asked to end while it started, and nobody has told it
            pipeline.stop(STOP_S)
        pipeline.states.wait_for(lambda state: state.is_final)
        return str(pipeline.failure) if pipeline.failure is not None else None

    @staticmethod
    def _note(life: _Life, state: State) -> None:
        if state is State.RUNNING:
            life.state = HostState.RUNNING
        elif state is State.REBALANCING:
            life.state = HostState.STARTING

    @staticmethod
    def _end(life: _Life) -> None:
        life.is_ending.set()
        pipeline = life.pipeline
        if pipeline is not None:
            pipeline.stop(STOP_S)
        if life.thread is not None:
            life.thread.join(STOP_S)


def _status(life: _Life) -> dict[str, Any]:
    return {
        "name": life.spec.name,
        "kind": life.spec.kind,
        "definition": dict(life.spec.definition),
        "isPaused": life.spec.is_paused,
        "state": life.state.value,
        "restarts": life.restarts,
        "failures": [{"timestampMs": one.timestamp_ms, "message": one.message} for one in life.failures],
        "report": life.pipeline.report() if isinstance(life.pipeline, Reporting) else None,
    }
