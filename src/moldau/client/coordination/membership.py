"""Membership in a group whose members agree on something other than partitions, and leader election on top of it.

librdkafka joins groups as a consumer only. Here the protocol type, the members' metadata and the assignment are defined
by the caller's `GroupProtocol`: schema registries elect a leader this way, Connect's workers distribute connectors.
`GroupMember` sends the requests, blocking. `Membership` runs one in a thread, rejoins after a rebalance or an outage,
and reports events to an event loop.

`Election` elects the one instance of a service that writes. The members' metadata and the assignment are a
`LeaderProtocol` of the service (`registry.leadership` has the registry's). A leader that could not send heartbeats for
the length of a session stops leading by its own clock, since the others may have elected another leader by then.
Start at `Membership` and `Election`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, Protocol

from moldau.client.admin import Admin
from moldau.client.coordination.outages import Outage
from moldau.client.errors import ClientError, UnreachableError
from moldau.client.waiting import join_thread
from moldau.client.wire import WireClient
from moldau.client.wire_admin import raise_for
from moldau.core.clock import Clock, SystemClock
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = [
    "Assigned",
    "Election",
    "GroupMember",
    "GroupProtocol",
    "Joined",
    "Leader",
    "LeaderProtocol",
    "Membership",
    "MembershipListener",
    "NoLeaderError",
    "RejoinNeededError",
]


RETRY_S = 0.25
REJOIN_S = 0.02
GROUP_COORDINATOR = 0
LEAVE_ATTEMPTS = 2
_REJOIN = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
    }
)
_TRANSIENT = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""What brokers answer in the moments after a start: the next attempt, or the one after it, succeeds."""


class RejoinNeededError(ClientError):
    """The group is being formed anew: join again."""


class Joined(NamedTuple):
    member_id: str
    generation: int
    members: Mapping[str, bytes]
    """What each member said of itself. Only the one that must assign is told; empty for the others."""

    @property
    def must_assign(self) -> bool:
        return bool(self.members)


class GroupProtocol(Protocol):
    """What the members of a group agree on. Called in the membership's thread."""

    @property
    def protocol_type(self) -> str:
        """Who may be in the group at all, such as `sr` or `connect`."""
        ...

    @property
    def name(self) -> str:
        """Of the protocol that members assign by, such as `v0`."""
        ...

    def metadata(self) -> bytes:
        """What this member says of itself; asked for at each join."""
        ...

    def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """An assignment for each member, decided by what they say of themselves. One member is asked."""
        ...


class Assigned(NamedTuple):
    member_id: str
    generation: int
    assignment: bytes


class MembershipListener(Protocol):
    """Told on the event loop, in order."""

    def on_assigned(self, assigned: Assigned) -> None: ...

    def on_revoked(self) -> None:
        """The group is being formed anew: nothing is assigned until `on_assigned`."""
        ...

    def on_failed(self, error: Exception, *, is_transient: bool) -> None:
        """The group could not be asked, and is asked again: what was assigned holds while the session is alive."""
        ...


class GroupMember:
    def __init__(
        self,
        open_admin: Callable[[], Admin],
        group_id: str,
        *,
        protocol_type: str,
        protocol: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
    ) -> None:
        """`open_admin` is called anew after each trouble: brokers may have come, gone or moved."""
        self._open_admin = open_admin
        self._group_id = group_id
        self._protocol_type, self._protocol = protocol_type, protocol
        self._session_timeout_ms, self._rebalance_timeout_ms = session_timeout_ms, rebalance_timeout_ms
        self._client: WireClient | None = None
        self._member_id = ""
        self._generation = -1

    def join(self, metadata: bytes) -> Joined:
        """Enter the group, or the next generation of it; waits until all members have come or were given up."""
        answer = self._ask_to_join(metadata)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            answer = self._ask_to_join(metadata)
        self._raise_for(answer.error_code)
        self._member_id, self._generation = answer.member_id, answer.generation_id
        members = {member.member_id: bytes(member.metadata) for member in answer.members}
        return Joined(self._member_id, self._generation, members)

    def sync(self, assignments: Mapping[str, bytes]) -> bytes:
        """Hand out the assignments, or wait for the member who does; returns this member's own."""
        request = Message(
            group_id=self._group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=None,
            protocol_type=self._protocol_type,
            protocol_name=self._protocol,
            assignments=[Message(member_id=name, assignment=content) for name, content in assignments.items()],
        )
        answer = self._send(ApiKey.SYNC_GROUP, request)
        self._raise_for(answer.error_code)
        return bytes(answer.assignment)

    def heartbeat(self) -> None:
        """Show that this member lives; raises `RejoinNeededError` when the group is being formed anew."""
        request = Message(
            group_id=self._group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=None,
        )
        self._raise_for(self._send(ApiKey.HEARTBEAT, request).error_code)

    def leave(self) -> None:
        """Go, so that the others need not wait for a silence; a group that cannot be reached finds out by itself."""
        if self._member_id:
            gone = Message(member_id=self._member_id, group_instance_id=None, reason="shutting down")
            request = Message(group_id=self._group_id, member_id=self._member_id, members=[gone])
            for _ in range(LEAVE_ATTEMPTS):
                try:
                    self._send(ApiKey.LEAVE_GROUP, request)
                except ClientError:
                    continue  # a broker that was restarted has closed the connection, a new one may work
                break
        self.close()

    def interrupt(self) -> None:
        """From another thread: end a wait, such as for the others to join. Only `leave` makes sense after it."""
        client = self._client
        if client is not None:
            client.interrupt()

    def close(self) -> None:
        """Drop the connection, not the membership: the next call connects again."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _ask_to_join(self, metadata: bytes) -> Message:
        request = Message(
            group_id=self._group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=self._member_id,
            group_instance_id=None,
            protocol_type=self._protocol_type,
            protocols=[Message(name=self._protocol, metadata=metadata)],
            reason=None,
        )
        return self._send(ApiKey.JOIN_GROUP, request)

    def _raise_for(self, error_code: int) -> None:
        if error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        if error_code in _REJOIN:
            raise RejoinNeededError(f"group {self._group_id} is being formed anew", ErrorCode(error_code))
        if error_code:
            self.close()
        raise_for(error_code, about=f"group {self._group_id}")

    def _send(self, api_key: ApiKey, request: Message) -> Message:
        if self._client is None:
            self._client = self._connected()
        try:
            return self._client.send(api_key, request)
        except ClientError:
            self.close()
            raise

    def _connected(self) -> WireClient:
        admin = self._open_admin()
        with admin.wire() as client:
            request = Message(key=self._group_id, key_type=GROUP_COORDINATOR, coordinator_keys=[self._group_id])
            answer = client.send(ApiKey.FIND_COORDINATOR, request)
        found = answer.coordinators[0] if answer.coordinators else answer
        raise_for(found.error_code, found.error_message)
        return admin.wire(found.node_id)


class Membership:
    """Keeps this process in a group until it is stopped."""

    def __init__(
        self,
        open_admin: Callable[[], Admin],
        group_id: str,
        protocol: GroupProtocol,
        listener: MembershipListener,
        *,
        session_timeout_ms: int,
        heartbeat_interval_ms: int,
        logger: logging.Logger,
        clock: Clock | None = None,
    ) -> None:
        self._group_id = group_id
        self._protocol = protocol
        self._listener = listener
        self._session_timeout_ms = session_timeout_ms
        self._heartbeat_s = heartbeat_interval_ms / 1000
        self._logger = logger
        self._clock = clock or SystemClock()
        self._member = GroupMember(
            open_admin,
            group_id,
            protocol_type=protocol.protocol_type,
            protocol=protocol.name,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=session_timeout_ms,
        )
        self._is_stopping = threading.Event()
        self._wake = threading.Event()
        """Ends the pause between two heartbeats."""
        self._is_failing = False
        self._is_cut_off = False
        """Whether the group could not be reached when this member was told to stop: then it cannot leave properly."""
        self._alive_ms: int | None = None
        self._unforeseen = ""
        """The last error that was logged with its traceback: once is enough."""
        self._outage = Outage(f"the group {group_id}")
        self._thread: threading.Thread | None = None

    @property
    def is_session_alive(self) -> bool:
        """Whether the others must count this member in, by the clock alone: they may not reach it, nor it them."""
        return self._alive_ms is not None and self._clock.monotonic_ms() - self._alive_ms < self._session_timeout_ms

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name=f"group-{self._group_id}", daemon=True)
        self._thread.start()

    def rejoin(self) -> None:
        """Have the group formed anew, because what this member says of itself, or should assign, has changed."""
        self._wake.set()

    async def stop(self, timeout_s: float) -> None:
        """Leave the group, so that others take over at once; where no broker answers, just end."""
        self._is_cut_off = self._is_failing
        self._is_stopping.set()
        self._wake.set()
        self._member.interrupt()
        if self._thread is not None:
            await join_thread(self._thread, timeout_s)

    # In the thread

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            try:
                self._take_part()
            except RejoinNeededError:
                self._alive_ms = self._clock.monotonic_ms()
                self._tell(self._listener.on_revoked)
                self._is_stopping.wait(REJOIN_S)
            except Exception as error:
                self._fail(error)
                self._is_stopping.wait(RETRY_S)
        if self._is_cut_off:
            self._member.close()
        else:
            self._member.leave()

    def _take_part(self) -> None:
        """Join, learn what is assigned, and send heartbeats until something changes."""
        self._wake.clear()
        if self._is_stopping.is_set():
            return  # checked after clearing: `stop` sets this one first
        joined = self._member.join(self._protocol.metadata())
        assignments = self._protocol.assign(joined.members) if joined.must_assign else {}
        assigned = Assigned(joined.member_id, joined.generation, self._member.sync(assignments))
        self._alive_ms = self._clock.monotonic_ms()
        self._is_failing = False
        self._tell(partial(self._listener.on_assigned, assigned))
        self._log(self._outage.recovery_line(self._clock.monotonic_ms() / 1000))
        while not self._wake.wait(self._heartbeat_s):
            self._member.heartbeat()
            self._alive_ms = self._clock.monotonic_ms()
        if not self._is_stopping.is_set():
            raise RejoinNeededError(f"group {self._group_id} is to be formed anew")

    def _fail(self, error: Exception) -> None:
        self._member.close()
        if self._is_stopping.is_set():
            return  # the way out caused it
        is_transient = isinstance(error, ClientError) and error.error_code in _TRANSIENT
        self._is_failing = not is_transient
        self._tell(partial(self._listener.on_failed, error, is_transient=is_transient))
        if is_transient or isinstance(error, UnreachableError):
            # That brokers are away is reported by the service's other clients, and needs no second line.
            self._logger.debug("the group %s cannot be reached: %s", self._group_id, error)
            return
        if not isinstance(error, MoldauError) and repr(error) != self._unforeseen:
            self._unforeseen = repr(error)
            self._logger.error("taking part in the group %s failed", self._group_id, exc_info=error)
        self._log(self._outage.failure_line(str(error), self._clock.monotonic_ms() / 1000))

    def _log(self, line: str | None) -> None:
        if line is not None:
            self._logger.warning("%s", line)

    def _tell(self, call: Callable[[], None]) -> None:
        def unless_stopping() -> None:
            if not self._is_stopping.is_set():
                call()

        try:
            self._loop.call_soon_threadsafe(unless_stopping)
        except RuntimeError:
            pass  # the loop is closed: nobody listens any more


class NoLeaderError(ClientError):
    """Nobody leads at the moment, though the group can be reached: ask again."""


class Leader(NamedTuple):
    """Who leads, by the URL at which the others reach it."""

    url: str | None = None
    """`None` where no member may lead."""
    error: str | None = None
    """Why nobody leads, where that is a mistake in somebody's settings."""


class LeaderProtocol(GroupProtocol, Protocol):
    """A group protocol by which every member is told the same: who leads."""

    def read_leader(self, assignment: bytes) -> Leader: ...


class Election:
    def __init__(
        self,
        open_admin: Callable[[], Admin],
        group_id: str,
        protocol: LeaderProtocol,
        *,
        own_url: str,
        session_timeout_ms: int,
        heartbeat_interval_ms: int,
        on_elected: Callable[[], None],
        logger: logging.Logger,
        clock: Clock | None = None,
    ) -> None:
        """`own_url` is this instance's, as its protocol tells it. `on_elected` is called on the loop each time this
        instance becomes the leader."""
        self.own_url = own_url
        self._protocol = protocol
        self._on_elected = on_elected
        self._logger = logger
        self._leader_url: str | None = None
        self._changed = asyncio.Event()
        self._failure: str | None = None
        """Why the group cannot be reached, while that is so and not just for a moment."""
        self._membership = Membership(
            open_admin,
            group_id,
            protocol,
            self,
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=heartbeat_interval_ms,
            logger=logger,
            clock=clock,
        )

    @property
    def is_leader(self) -> bool:
        return self._leader_url == self.own_url and self._membership.is_session_alive

    @property
    def leader_url(self) -> str | None:
        """Where the leader is, if that is another instance and known."""
        return None if self._leader_url == self.own_url else self._leader_url

    async def wait_for_leader(self, timeout_s: float) -> None:
        """Return when somebody leads; raises `NoLeaderError`, or `UnreachableError` where no broker answers."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self.leader_url is None and not self.is_leader:
            left_s = deadline - asyncio.get_running_loop().time()
            if self._failure is not None:
                raise UnreachableError(self._failure)
            if left_s <= 0:
                raise NoLeaderError("No leader is known; ask again in a moment")
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left_s)
            except TimeoutError:
                continue

    def start(self) -> None:
        self._membership.start()

    async def stop(self, timeout_s: float) -> None:
        """Leave the group, so that another instance takes over at once; where no broker answers, just end."""
        self._learn(None, failure="the service is being stopped")
        await self._membership.stop(timeout_s)

    # What the membership tells, on the event loop

    def on_assigned(self, assigned: Assigned) -> None:
        leader = self._protocol.read_leader(assigned.assignment)
        if leader.error is not None:
            self._logger.error("%s", leader.error)
        self._learn(None if leader.error is not None else leader.url)

    def on_revoked(self) -> None:
        self._learn(None)

    def on_failed(self, error: Exception, *, is_transient: bool) -> None:
        self._learn(
            self._leader_url if self._membership.is_session_alive else None,
            failure=None if is_transient else str(error),
        )

    def _learn(self, url: str | None, *, failure: str | None = None) -> None:
        old, self._leader_url, self._failure = self._leader_url, url, failure
        self._changed.set()
        if url is not None and url != old:
            self._logger.info("the leader is %s", url)
            if url == self.own_url:
                self._on_elected()
