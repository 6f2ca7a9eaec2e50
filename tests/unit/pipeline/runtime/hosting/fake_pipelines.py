"""Pipelines that do nothing, for tests of hosting; run as a program, an engine process that hosts such pipelines."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from moldau.core.errors import MoldauError
from moldau.pipeline.runtime.hosting.engine_service import EngineService
from moldau.pipeline.runtime.hosting.host import PipelineHost, PipelineSpec
from moldau.pipeline.runtime.metrics import MetricsSnapshot, PipelineMetrics
from moldau.pipeline.runtime.states import State, StateMachine

KIND = "fake"


def fake_spec(name: str, *, is_paused: bool = False, **definition: Any) -> PipelineSpec:
    return PipelineSpec(name=name, kind=KIND, definition=definition, is_paused=is_paused)


class FakePipeline:
    """Runs until it is stopped, or told to fail."""

    def __init__(self, spec: PipelineSpec) -> None:
        self.spec = spec
        self.states = StateMachine()
        self.failure: MoldauError | None = None

    def start(self) -> None:
        if self.spec.definition.get("fails_to_start"):
            raise MoldauError("topic orders does not exist")
        self.states.move(State.REBALANCING)
        self.states.move(State.RUNNING)

    def fail(self, text: str) -> None:
        self.failure = MoldauError(text)
        self.states.move(State.PENDING_ERROR)
        self.states.move(State.ERROR)

    def stop(self, timeout_s: float) -> bool:
        self.states.move(State.PENDING_SHUTDOWN)
        self.states.move(State.NOT_RUNNING)
        return True

    def metrics(self) -> MetricsSnapshot:
        return PipelineMetrics().snapshot({})

    def explain(self) -> str:
        return f"{self.spec.name} does nothing"


class FakeBuilder:
    def __init__(self, folder: Path | None = None) -> None:
        self.built: list[FakePipeline] = []
        self.has_built = threading.Semaphore(0)
        self.deleted: list[str] = []
        self._folder = folder

    def build(self, spec: PipelineSpec) -> FakePipeline:
        if spec.definition.get("cannot_be_built"):
            raise ValueError("no such column")
        pipeline = FakePipeline(spec)
        self.built.append(pipeline)
        self.has_built.release()
        return pipeline

    def delete_state(self, spec: PipelineSpec) -> None:
        self.deleted.append(spec.name)
        if self._folder is not None:
            (self._folder / f"deleted-{spec.name}").touch()


if __name__ == "__main__":
    from moldau.server.services.run import run_services

    folder = Path(sys.argv[1])
    sys.exit(
        run_services(
            lambda: [EngineService(folder, PipelineHost({KIND: FakeBuilder(folder)}))],
            roles=("test-engine",),
        )
    )
