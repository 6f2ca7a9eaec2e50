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
"""Errors of brokers that have just started: one of the next attempts succeeds."""


class RejoinNeededError(ClientError):
    """The group is rebalancing: join again."""


class Joined(NamedTuple):
    member_id: str
    generation: int
    members: Mapping[str, bytes]
    """Each member's metadata. Only the member that must assign gets it; empty for the others."""

    @property
    def must_assign(self) -> bool:
        return bool(self.members)


class GroupProtocol(Protocol):
    """What the members of a group agree on. Called in the membership's thread."""

    @property
    def protocol_type(self) -> str:
        """The group's protocol type, such as `sr` or `connect`; all members must have the same."""
        ...

    @property
    def name(self) -> str:
        """The name of the assignment protocol, such as `v0`."""
        ...

    def metadata(self) -> bytes:
        """This member's metadata; called at each join."""
        ...

    def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """An assignment for each member, given the members' metadata. Called in one member only."""
        ...


class Assigned(NamedTuple):
    member_id: str
    generation: int
    assignment: bytes


class MembershipListener(Protocol):
    """Callbacks on the event loop, in order."""

    def on_assigned(self, assigned: Assigned) -> None: ...

    def on_revoked(self) -> None:
        """The group is rebalancing: nothing is assigned until `on_assigned`."""
        ...

    def on_failed(self, error: Exception, *, is_transient: bool) -> None:
        """A request failed and is retried: the assignment stays valid while the session is alive."""
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
        """`open_admin` is called again after each failure, since the brokers may have changed."""
        self._open_admin = open_admin
        self._group_id = group_id
        self._protocol_type, self._protocol = protocol_type, protocol
        self._session_timeout_ms, self._rebalance_timeout_ms = session_timeout_ms, rebalance_timeout_ms
        self._client: WireClient | None = None
        self._member_id = ""
        self._generation = -1

    def join(self, metadata: bytes) -> Joined:
        """Join the group or its next generation; blocks until all members have joined or timed out."""
        answer = self._ask_to_join(metadata)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            answer = self._ask_to_join(metadata)
        self._raise_for(answer.error_code)
        self._member_id, self._generation = answer.member_id, answer.generation_id
        members = {member.member_id: bytes(member.metadata) for member in answer.members}
        return Joined(self._member_id, self._generation, members)

    def sync(self, assignments: Mapping[str, bytes]) -> bytes:
        """Send the assignments, or wait for the member that does; returns this member's own."""
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
        """Send a heartbeat; raises `RejoinNeededError` when the group is rebalancing."""
        request = Message(
            group_id=self._group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=None,
        )
        self._raise_for(self._send(ApiKey.HEARTBEAT, request).error_code)

    def leave(self) -> None:
        """Leave the group, so that the others need not wait for the session timeout; failures are ignored."""
        if self._member_id:
            gone = Message(member_id=self._member_id, group_instance_id=None, reason="shutting down")
            request = Message(group_id=self._group_id, member_id=self._member_id, members=[gone])
            for _ in range(LEAVE_ATTEMPTS):
                try:
                    self._send(ApiKey.LEAVE_GROUP, request)
                except ClientError:
                    continue  # a restarted broker has closed the connection; a new one may work
                break
        self.close()

    def interrupt(self) -> None:
        """From another thread: end a blocking request, such as a join. Only `leave` may be called afterwards."""
        client = self._client
        if client is not None:
            client.interrupt()

    def close(self) -> None:
        """Close the connection but keep the membership: the next call reconnects."""
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
            raise RejoinNeededError(f"group {self._group_id} is rebalancing", ErrorCode(error_code))
        if error_code:
            self.close()
        raise_for(error_code, about=f"group {self._group_id}")

    def _send(self, api_key: ApiKey, request: Message) -> Message:
        if self._client is None:
            self._client = self._connect()
        try:
            return self._client.send(api_key, request)
        except ClientError:
            self.close()
            raise

    def _connect(self) -> WireClient:
        admin = self._open_admin()
        with admin.wire() as client:
            request = Message(key=self._group_id, key_type=GROUP_COORDINATOR, coordinator_keys=[self._group_id])
            answer = client.send(ApiKey.FIND_COORDINATOR, request)
        found = answer.coordinators[0] if answer.coordinators else answer
        raise_for(found.error_code, found.error_message)
        return admin.wire(found.node_id)


class Membership:
    """Keeps this process a member of a group until it is stopped."""

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
        """Set to end the pause between two heartbeats."""
        self._is_failing = False
        self._is_cut_off = False
        """Whether the group was unreachable when `stop` was called: then this member cannot leave it properly."""
        self._alive_ms: int | None = None
        self._unforeseen = ""
        """The last error that was logged with its traceback: once is enough."""
        self._outage = Outage(f"the group {group_id}")
        self._thread: threading.Thread | None = None

    @property
    def is_session_alive(self) -> bool:
        """Whether the session cannot have expired yet, judged by the clock alone, without asking a broker."""
        return self._alive_ms is not None and self._clock.monotonic_ms() - self._alive_ms < self._session_timeout_ms

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name=f"group-{self._group_id}", daemon=True)
        self._thread.start()

    def rejoin(self) -> None:
        """Start a rebalance, because this member's metadata, or the assignment it makes, has changed."""
        self._wake.set()

    async def stop(self, timeout_s: float) -> None:
        """Leave the group, so that others take over at once; without a broker, just stop."""
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
                self._call_on_loop(self._listener.on_revoked)
                self._is_stopping.wait(REJOIN_S)
            except Exception as error:
                self._fail(error)
                self._is_stopping.wait(RETRY_S)
        if self._is_cut_off:
            self._member.close()
        else:
            self._member.leave()

    def _take_part(self) -> None:
        """Join, get the assignment, and send heartbeats until something changes."""
        self._wake.clear()
        if self._is_stopping.is_set():
            return  # checked after clearing: `stop` sets this one first
        joined = self._member.join(self._protocol.metadata())
        assignments = self._protocol.assign(joined.members) if joined.must_assign else {}
        assigned = Assigned(joined.member_id, joined.generation, self._member.sync(assignments))
        self._alive_ms = self._clock.monotonic_ms()
        self._is_failing = False
        self._call_on_loop(partial(self._listener.on_assigned, assigned))
        self._log(self._outage.recovery_line(self._clock.monotonic_ms() / 1000))
        while not self._wake.wait(self._heartbeat_s):
            self._member.heartbeat()
            self._alive_ms = self._clock.monotonic_ms()
        if not self._is_stopping.is_set():
            raise RejoinNeededError(f"group {self._group_id} must rebalance")

    def _fail(self, error: Exception) -> None:
        self._member.close()
        if self._is_stopping.is_set():
            return  # caused by stopping
        is_transient = isinstance(error, ClientError) and error.error_code in _TRANSIENT
        self._is_failing = not is_transient
        self._call_on_loop(partial(self._listener.on_failed, error, is_transient=is_transient))
        if is_transient or isinstance(error, UnreachableError):
            # The service's other clients log that brokers are unreachable; a second line is not needed.
            self._logger.debug("the group %s cannot be reached: %s", self._group_id, error)
            return
        if not isinstance(error, MoldauError) and repr(error) != self._unforeseen:
            self._unforeseen = repr(error)
            self._logger.error("the membership in group %s failed", self._group_id, exc_info=error)
        self._log(self._outage.failure_line(str(error), self._clock.monotonic_ms() / 1000))

    def _log(self, line: str | None) -> None:
        if line is not None:
            self._logger.warning("%s", line)

    def _call_on_loop(self, call: Callable[[], None]) -> None:
        def unless_stopping() -> None:
            if not self._is_stopping.is_set():
                call()

        try:
            self._loop.call_soon_threadsafe(unless_stopping)
        except RuntimeError:
            pass  # the loop is closed


class NoLeaderError(ClientError):
    """There is no leader at the moment, though the group can be reached: retry."""


class Leader(NamedTuple):
    """The leader, by the URL at which the others reach it."""

    url: str | None = None
    """`None` if no member is eligible."""
    error: str | None = None
    """Why there is no leader, if a member's settings are wrong."""


class LeaderProtocol(GroupProtocol, Protocol):
    """A group protocol whose assignment is the same for every member: the leader."""

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
        """`own_url` is this instance's URL, as in its metadata. `on_elected` is called on the loop each time this
        instance becomes the leader."""
        self.own_url = own_url
        self._protocol = protocol
        self._on_elected = on_elected
        self._logger = logger
        self._leader_url: str | None = None
        self._changed = asyncio.Event()
        self._failure: str | None = None
        """Why the group cannot be reached, during an outage that is not just transient."""
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
        """The leader's URL, if another instance is known to lead."""
        return None if self._leader_url == self.own_url else self._leader_url

    async def wait_for_leader(self, timeout_s: float) -> None:
        """Return when there is a leader; raises `NoLeaderError`, or `UnreachableError` where no broker answers."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self.leader_url is None and not self.is_leader:
            left_s = deadline - asyncio.get_running_loop().time()
            if self._failure is not None:
                raise UnreachableError(self._failure)
            if left_s <= 0:
                raise NoLeaderError("No leader is known; try again in a moment")
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left_s)
            except TimeoutError:
                continue

    def start(self) -> None:
        self._membership.start()

    async def stop(self, timeout_s: float) -> None:
        """Leave the group, so that another instance takes over at once; without a broker, just stop."""
        self._set_leader(None, failure="the service is being stopped")
        await self._membership.stop(timeout_s)

    # MembershipListener, on the event loop

    def on_assigned(self, assigned: Assigned) -> None:
        leader = self._protocol.read_leader(assigned.assignment)
        if leader.error is not None:
            self._logger.error("%s", leader.error)
        self._set_leader(None if leader.error is not None else leader.url)

    def on_revoked(self) -> None:
        self._set_leader(None)

    def on_failed(self, error: Exception, *, is_transient: bool) -> None:
        self._set_leader(
            self._leader_url if self._membership.is_session_alive else None,
            failure=None if is_transient else str(error),
        )

    def _set_leader(self, url: str | None, *, failure: str | None = None) -> None:
        old, self._leader_url, self._failure = self._leader_url, url, failure
        self._changed.set()
        if url is not None and url != old:
            self._logger.info("the leader is %s", url)
            if url == self.own_url:
                self._on_elected()
