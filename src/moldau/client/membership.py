"""A member of a group whose members agree on something else than partitions, over `client.wire`.

librdkafka joins groups as a consumer only. Here the protocol type and what members tell each other are the caller's:
schema registries elect a leader this way. Blocking, for one thread; what to do after an error is the caller's to
decide. Start at `GroupMember.join`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.client.wire import WireClient
from moldau.client.wire_admin import raise_for
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = ["GroupMember", "Joined", "RejoinNeededError"]

GROUP_COORDINATOR = 0
LEAVE_ATTEMPTS = 2
_REJOIN = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
    }
)


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
