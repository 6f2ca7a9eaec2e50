"""Carriers as long-running Spark tasks. Start at `SparkCarriers`."""

from __future__ import annotations

import threading

from moldau.connect.runtime.board import TaskBoard
from moldau.connect.runtime.channel import CarrierChannel
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.hosting.long_tasks import LongTask

__all__ = ["SparkCarriers"]

CLOSE_S = 8.0


class SparkCarriers:
    def __init__(self, engine: Engine, board: TaskBoard, channel: CarrierChannel) -> None:
        self._engine = engine
        self._board = board
        self._channel = channel
        self._tasks: dict[int, LongTask] = {}
        self._lock = threading.Lock()

    def ensure(self) -> None:
        """Start carriers that have something to do and do not run."""
        with self._lock:
            for number in self._board.carriers_needed - self._tasks.keys():
                task = LongTask(
                    self._engine,
                    f"connect-carrier-{number}",
                    self._channel.body(number),
                    lambda number=number: self._board.forget_carrier(number),  # type: ignore[misc]
                )
                self._tasks[number] = task
                task.start()

    def close(self) -> None:
        """End all carriers; their tasks have been ended before."""
        self._channel.is_ending = True
        with self._lock:
            for task in self._tasks.values():
                task.ask_to_end()
            for task in self._tasks.values():
                task.close(CLOSE_S)
