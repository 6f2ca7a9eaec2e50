"""Long-running Spark tasks: a function that works on an executor for as long as it is wanted.

Each is a job of one partition in a thread of its own. Spark starts an attempt that was killed again; a job that fails
for good is started again here. Start at `LongTask`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moldau.core.errors import MoldauError
from moldau.pipeline.runtime.engine import Engine

__all__ = ["LongTask"]

PAUSE_S = 1.0

logger = logging.getLogger("moldau.engine")

Body = Callable[[Iterable[Any]], None]
"""Pickled by name, so it must be importable on executors; its argument has nothing in it."""


class LongTask:
    def __init__(self, engine: Engine, name: str, body: Body, on_end: Callable[[], None]) -> None:
        """`on_end` is called each time the job has ended, whatever the reason."""
        self.name = name
        self._engine = engine
        self._body = body
        self._on_end = on_end
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def ask_to_end(self) -> None:
        """Do not start it again once it has ended."""
        self._is_closing.set()

    def close(self, timeout_s: float) -> None:
        """Wait for its end; cancel it after the timeout."""
        self.ask_to_end()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._engine.session().sparkContext.cancelJobGroup(self.name)
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._is_closing.is_set():
            try:
                context = self._engine.session().sparkContext
                context.setJobGroup(self.name, self.name, interruptOnCancel=True)
                context.parallelize([0], 1).foreachPartition(self._body)
            except MoldauError as error:
                logger.warning("%s cannot be started: %s", self.name, error)
            except Exception as error:
                if not self._is_closing.is_set():
                    text = str(error).strip().partition("\n")[0]
                    logger.warning("%s has ended and is started again: %s", self.name, text)
            self._on_end()
            self._is_closing.wait(PAUSE_S)
