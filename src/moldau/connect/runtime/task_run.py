"""One run of a connector task in a thread: made from its definition, watched, stopped, and told apart when it fails.

A failure ends this task and no other: it stays FAILED, with the trace, until it is restarted. Start at `start_task`.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from moldau.client.errors import FencedError
from moldau.connect.api.connector import SinkTask, SourceTask
from moldau.connect.api.plugins import Plugins
from moldau.connect.runtime.board import Order
from moldau.connect.runtime.definition import TaskDefinition
from moldau.connect.runtime.record_steps import listed
from moldau.connect.runtime.secrets import Secrets

__all__ = ["Body", "TaskRun", "start_task"]

logger = logging.getLogger("moldau.connect")


class Body(Protocol):
    """What a run does: `source_run.SourceRun` or `sink_run.SinkRun`."""

    topics: set[str]
    """Topics that were written or read so far."""

    def run(self) -> None:
        """Work until asked to stop; raises what ends the task."""

    def metrics(self) -> Mapping[str, float]: ...


MakeBody = Callable[["TaskRun"], Body]


class TaskRun:
    """May be asked by any thread; the work is in a thread of its own."""

    def __init__(self, order: Order, make_body: MakeBody) -> None:
        self.key = order.key
        self.definition = TaskDefinition.of(order.definition)
        self.secrets = Secrets(self.definition.worker)
        self.stopping = threading.Event()
        self._make_body = make_body
        self._state = "UNASSIGNED"
        self._trace: str | None = None
        self._body: Body | None = None
        self._stop_asked: float | None = None
        self._graceful_s = int(self.definition.worker.get("task.shutdown.graceful.timeout.ms", "5000")) / 1000
        self._thread = threading.Thread(target=self._run, name=f"task-{order.key}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def note_running(self) -> None:
        """Called by the body when the task has started."""
        self._state = "RUNNING"

    def ask_to_stop(self) -> None:
        """Have the run end; it takes a moment."""
        if self._stop_asked is None:
            self._stop_asked = time.monotonic()
            self.stopping.set()

    def wait_until_ended(self) -> bool:
        """Wait for the thread, within `task.shutdown.graceful.timeout.ms`."""
        self._thread.join(self._graceful_s)
        return not self._thread.is_alive()

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    @property
    def is_overdue(self) -> bool:
        """Whether it was asked to end too long ago: it is left alone, and its successor fences it."""
        return self._stop_asked is not None and time.monotonic() - self._stop_asked > self._graceful_s

    def report(self) -> dict[str, Any]:
        """For the worker: JSON."""
        body = self._body
        return {
            "state": self._state,
            "trace": self._trace,
            "topics": sorted(body.topics) if body is not None else [],
            "metrics": dict(body.metrics()) if body is not None else {},
        }

    def _run(self) -> None:
        try:
            self._body = self._make_body(self)
            self._body.run()
            self._state = "UNASSIGNED"
        except BaseException as error:
            if self.stopping.is_set() and isinstance(error, FencedError):
                return  # its successor has begun: nothing is wrong
            self._trace = self.secrets.hide("".join(traceback.format_exception(error)).rstrip())
            self._state = "FAILED"
            logger.error(
                "task %s failed and stays so until it is restarted: %s",
                self.key,
                self.secrets.hide(f"{type(error).__name__}: {error}"),
            )


def start_task(order: Order) -> TaskRun:
    """Start a task as its definition says."""
    run = TaskRun(order, _body)
    run.start()
    return run


_plugins: dict[str, Plugins] = {}
_plugins_lock = threading.Lock()


def plugins_of(worker: Mapping[str, str]) -> Plugins:
    """The plug-ins that a worker's settings give; found once in each process."""
    path = worker.get("plugin.path", "")
    with _plugins_lock:
        if path not in _plugins:
            _plugins[path] = Plugins(listed(path))
        return _plugins[path]


def _body(run: TaskRun) -> Body:
    from moldau.connect.runtime.sink_run import SinkRun
    from moldau.connect.runtime.source_run import SourceRun

    plugins = plugins_of(run.definition.worker)
    task = plugins.connector(run.definition.connector_config["connector.class"]).task_class()()
    if isinstance(task, SourceTask):
        return SourceRun(run, task, plugins)
    assert isinstance(task, SinkTask)
    return SinkRun(run, task, plugins)
