"""Electing the one instance that writes, through the brokers' group protocol.

A thread keeps the membership; what it learns is handed to the event loop. A leader that could not show its life for
as long as a session lasts stops leading by the clock alone, since the others may have elected another by then.
Who is elected is `registry.identity`. Start at `Election`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial

from moldau.client.admin import Admin
from moldau.client.errors import UnreachableError
from moldau.client.membership import GroupMember, RejoinNeededError
from moldau.core.clock import Clock, SystemClock
from moldau.core.errors import MoldauError
from moldau.registry.blocking import joined
from moldau.registry.errors import StoreError, UnknownLeaderError
from moldau.registry.identity import (
    NO_ERROR,
    PROTOCOL,
    PROTOCOL_TYPE,
    Assignment,
    InstanceIdentity,
    decode_assignment,
    elected,
)
from moldau.registry.outages import Outage

__all__ = ["Election"]

RETRY_S = 0.25
REJOIN_S = 0.02
_logger = logging.getLogger("moldau.registry")


class Election:
    def __init__(
        self,
        open_admin: Callable[[], Admin],
        group_id: str,
        identity: InstanceIdentity,
        *,
        session_timeout_ms: int,
        heartbeat_interval_ms: int,
        on_elected: Callable[[], None],
        clock: Clock | None = None,
    ) -> None:
        """`on_elected` is called on the loop each time this instance becomes the leader."""
        self._group_id = group_id
        self._identity = identity
        self._session_timeout_ms = session_timeout_ms
        self._member = GroupMember(
            open_admin,
            group_id,
            protocol_type=PROTOCOL_TYPE,
            protocol=PROTOCOL,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=session_timeout_ms,
        )
        self._heartbeat_s = heartbeat_interval_ms / 1000
        self._on_elected = on_elected
        self._clock = clock or SystemClock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._alive_ms = 0
        self._leader: InstanceIdentity | None = None
        self._changed: asyncio.Event = asyncio.Event()
        self._trouble: str | None = None
        """Why the group cannot be reached, while that is so."""
        self._is_cut_off = False
        """Whether the group could not be reached when this instance was told to stop: then nobody is told good-bye."""
        self._outage = Outage(f"the group {group_id}")
        self.cluster_id = ""

    # What the registry asks

    @property
    def is_leader(self) -> bool:
        return self._leader == self._identity and self._is_session_alive

    @property
    def own_url(self) -> str:
        return self._identity.url

    @property
    def leader_url(self) -> str | None:
        """Where the leader is, if that is another instance and known."""
        return None if self._leader is None or self._leader == self._identity else self._leader.url

    @property
    def _is_session_alive(self) -> bool:
        return self._clock.monotonic_ms() - self._alive_ms < self._session_timeout_ms

    async def settled(self, timeout_s: float) -> None:
        """Wait until somebody leads; raises `UnknownLeaderError`, or `StoreError` where no broker answers."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self.leader_url is None and not self.is_leader:
            left = deadline - asyncio.get_running_loop().time()
            if self._trouble is not None:
                raise StoreError(f"Nothing can be written now, reads go on: {self._trouble}")
            if left <= 0:
                raise UnknownLeaderError("No leader is known; ask again in a moment")
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                continue

    # Life

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="registry-election", daemon=True)
        self._thread.start()

    async def stop(self, timeout_s: float) -> None:
        """Leave the group, so that another instance takes over at once; where no broker answers, just end."""
        self._is_cut_off = self._trouble is not None
        self._stopping.set()
        self._leader, self._trouble = None, "the registry is being stopped"
        self._changed.set()
        self._member.interrupt()
        if self._thread is not None:
            await joined(self._thread, timeout_s)

    # In the thread

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._take_part()
            except RejoinNeededError:
                self._tell(Assignment())
                self._stopping.wait(REJOIN_S)
            except Exception as error:
                self._report(error)
                self._member.close()
                self._tell(None, trouble=str(error))
                self._stopping.wait(RETRY_S)
        if self._is_cut_off:
            self._member.close()
        else:
            self._member.leave()

    def _report(self, error: Exception) -> None:
        """Few lines for a trouble that lasts; nothing when the way out caused it.

        That brokers are away is told by the client that reads the topic, and needs no second line.
        """
        if self._stopping.is_set():
            return
        if isinstance(error, UnreachableError):
            _logger.debug("the group %s cannot be reached: %s", self._group_id, error)
            return
        if not isinstance(error, MoldauError):
            _logger.error("the election failed", exc_info=error)
        line = self._outage.failed(str(error), self._clock.monotonic_ms() / 1000)
        if line is not None:
            _logger.warning("%s", line)

    def _take_part(self) -> None:
        """Join, learn who leads, and show signs of life until something changes."""
        joined = self._member.join(self._identity.encode())
        assignments = {}
        if joined.must_assign:
            content = elected(joined.members).encode()
            assignments = dict.fromkeys(joined.members, content)
        assignment = decode_assignment(self._member.sync(assignments))
        self._tell(assignment)
        line = self._outage.recovered(self._clock.monotonic_ms() / 1000)
        if line is not None:
            _logger.warning("%s", line)
        while not self._stopping.wait(self._heartbeat_s):
            self._member.heartbeat()
            self._alive_ms = self._clock.monotonic_ms()

    def _tell(self, assignment: Assignment | None, *, trouble: str | None = None) -> None:
        if assignment is not None:
            self._alive_ms = self._clock.monotonic_ms()
        try:
            self._loop.call_soon_threadsafe(partial(self._learn, assignment, trouble))
        except RuntimeError:
            _logger.debug("the loop is closed; the election's news come too late")

    # On the loop

    def _learn(self, assignment: Assignment | None, trouble: str | None) -> None:
        """`None` is no news: whoever leads goes on until its session is over."""
        if self._stopping.is_set():
            return
        self._trouble = trouble
        if assignment is not None:
            self._learn_leader(assignment)
        elif not self._is_session_alive:
            self._leader = None
        self._changed.set()

    def _learn_leader(self, assignment: Assignment) -> None:
        if assignment.error != NO_ERROR:
            _logger.error("two instances call themselves %s: give each a host.name of its own", self._identity.url)
        old, self._leader = self._leader, assignment.leader if assignment.error == NO_ERROR else None
        if self._leader is not None and self._leader != old:
            _logger.info("the leader is %s", self._leader.url)
            if self._leader == self._identity:
                self._on_elected()
