"""Carriers as threads of this process: for workers without Spark, and for tests. Start at `ThreadCarriers`."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from moldau.connect.runtime.board import Order, TaskBoard
from moldau.connect.runtime.carrier import Carrier

__all__ = ["ThreadCarriers"]

JOIN_S = 10.0


class ThreadCarriers:
    def __init__(self, board: TaskBoard) -> None:
        self._board = board
        self._threads: dict[int, threading.Thread] = {}
        self._lock = threading.Lock()
        self._is_closing = threading.Event()

    def ensure(self) -> None:
        """Start carriers that have something to do and do not run."""
        with self._lock:
            for number in self._board.carriers_needed:
                thread = self._threads.get(number)
                if thread is None or not thread.is_alive():
                    thread = threading.Thread(target=self._run, args=(number,), name=f"carrier-{number}", daemon=True)
                    self._threads[number] = thread
                    thread.start()

    def close(self) -> None:
        """End all carriers and their tasks."""
        self._is_closing.set()
        for thread in self._threads.values():
            thread.join(JOIN_S)

    def _run(self, number: int) -> None:
        def sync(life: str, reports: Mapping[str, Any], wait_s: float) -> list[Order] | None:
            if self._is_closing.is_set():
                return None
            version = self._board.version
            orders = self._board.sync(number, life, reports)
            self._board.wait_for_change(version, wait_s)
            return orders

        try:
            Carrier(sync).run()
        finally:
            self._board.forget_carrier(number)
