"""The core of a registry instance: reads from memory, and writes, one at a time, on the leader only.

A write is decided on the state after all earlier writes have been read back, and is answered when its own records have
been read back. The topic and the election are behind `Store` and `Leadership`; HTTP is `registry.app`.
Start at `Registry.change`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from moldau.registry.decisions.decision import Decision
from moldau.registry.decisions.register import find_registered, register
from moldau.registry.entities import SchemaVersion
from moldau.registry.errors import StoreError, StoreTimeoutError, TooBusyError, UnknownLeaderError
from moldau.registry.leadership import Leadership
from moldau.registry.parsing.check_client import CheckClient
from moldau.registry.parsing.parser import Parser
from moldau.registry.requests import RegisterRequest
from moldau.registry.settings import RegistrySettings
from moldau.registry.state import State
from moldau.registry.store import Store

__all__ = ["Registry"]

Reply = TypeVar("Reply")
WORKERS = 4
"""Threads for decisions. They share the interpreter lock (GIL), so more threads would not be faster."""
MAX_WAITING = 100
MAX_CHARACTERS_AT_ONCE = 20_000
"""Known schemas up to this length are looked up without a worker thread: normalizing one takes a few milliseconds."""
SWITCH_S = 0.0005
"""How long a decision may hold the GIL while a read waits for it; Python's default of 5 ms is too long."""
DEEPEST_RECURSION = 4000
"""The recursion limit: schemas nested up to `json_text.MAX_NESTING` need up to nine calls per level."""


class Registry:
    def __init__(
        self, settings: RegistrySettings, store: Store, leadership: Leadership, *, workers: int = WORKERS
    ) -> None:
        """`workers` threads run decisions; with 0, the event loop runs them and no process compares schemas."""
        self.settings = settings
        self.store = store
        self.leadership = leadership
        self._check_client = CheckClient() if workers else None
        self.parser = Parser(settings["schema.cache.size"], self._check_client)
        self._writing = asyncio.Lock()
        self._write: asyncio.Future[None] | None = None
        self._waiting = 0
        self._is_closing = False
        if workers:  # with 0 it is embedded in a user's process, whose limits must not change
            sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))
            sys.setrecursionlimit(max(sys.getrecursionlimit(), DEEPEST_RECURSION))
        self._workers = ThreadPoolExecutor(workers, thread_name_prefix="registry-decisions") if workers else None

    async def finish_writes(self, timeout_s: float) -> None:
        """Wait for the current write and start no other; the next leader takes later writes."""
        self._is_closing = True
        try:
            await asyncio.wait_for(self._writing.acquire(), timeout_s)
        except TimeoutError:
            if self._write is not None:
                self._write.cancel()
        else:
            self._writing.release()

    def close(self) -> None:
        if self._workers is not None:
            self._workers.shutdown(wait=False, cancel_futures=True)
        if self._check_client is not None:
            self._check_client.close()

    @property
    def state(self) -> State:
        return self.store.state

    async def change(self, decide: Callable[[State], Decision[Reply]]) -> Reply:
        """Decide a change, write its records, read them back and return the reply. Works on the leader only."""
        async with self._writing:
            if self._is_closing or not self.leadership.is_leader:
                raise UnknownLeaderError("This instance is no longer the leader; try again in a moment")
            await self._wait_for_store(self.store.catch_up())
            decision = await self.examine(decide)
            if decision.records:
                await self._wait_for_store(self.store.append(decision.records))
            return decision.reply

    async def _wait_for_store(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for the store; `finish_writes` cancels the wait when the registry stops."""
        self._write = write = asyncio.ensure_future(work)
        try:
            await write
        except asyncio.CancelledError:
            if not (self._is_closing and write.cancelled()):
                raise
            raise StoreTimeoutError("The registry is being stopped; the write may or may not have succeeded") from None
        finally:
            self._write = None

    async def examine(self, question: Callable[[State], Reply]) -> Reply:
        """Run a slow query (parsing, comparing) in a worker thread, so that other requests are answered meanwhile."""
        if self._workers is None:
            return question(self.state)
        if self._waiting >= MAX_WAITING:
            raise TooBusyError(
                f"{MAX_WAITING} schemas are already waiting to be parsed and compared; try again in a moment"
            )
        self._waiting += 1
        try:
            with self.store.frozen():
                return await asyncio.get_running_loop().run_in_executor(self._workers, question, self.state)
        finally:
            self._waiting -= 1

    async def find_registered(self, subject: str, request: RegisterRequest, *, normalize: bool) -> SchemaVersion | None:
        """The version that registering would return without a write, else `None`. Works on any instance."""

        def find(state: State) -> SchemaVersion | None:
            defaults = self.settings.config_defaults
            return find_registered(state, self.parser, subject, request, defaults=defaults, normalize=normalize)

        is_short = len(request.schema) <= MAX_CHARACTERS_AT_ONCE
        if is_short and self.parser.knows(request.schema_type, request.schema, request.references):
            return find(self.state)
        return await self.examine(find)

    async def register(self, subject: str, request: RegisterRequest, *, normalize: bool, force: bool) -> SchemaVersion:
        settings = self.settings
        decided = await self.change(
            lambda state: register(
                state,
                self.parser,
                subject,
                request,
                defaults=settings.config_defaults,
                normalize=normalize,
                force=force,
                may_be_empty=not settings["schema.reject.empty.subject"],
                validates_new=settings["schema.validate.new.schemas"],
            )
        )
        found = self.state.version(decided.subject, decided.version)
        if found is None or found.id != decided.id or found.identity != decided.identity:
            raise StoreError(f"Version {decided.version} was taken by another writer meanwhile; try again")
        return found
