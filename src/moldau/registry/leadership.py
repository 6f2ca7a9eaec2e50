"""Leader election among the registries of a cluster: the members' metadata, the election rule and its result.

The documents are those of Confluent's registries, in the group protocol `sr`. `client.coordination.membership` joins
and leaves the group. Start at `Leadership` and `elect`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from moldau.client.coordination.membership import Election, Leader, NoLeaderError
from moldau.client.errors import UnreachableError
from moldau.registry.errors import StoreError, UnknownLeaderError

__all__ = [
    "PROTOCOL_TYPE",
    "Assignment",
    "ElectedLeadership",
    "InstanceIdentity",
    "Leadership",
    "RegistryProtocol",
    "SoleLeadership",
    "decode_assignment",
    "elect",
]

PROTOCOL_TYPE = "sr"
PROTOCOL = "v0"
VERSION = 1
NO_ERROR, DUPLICATE_URLS = 0, 1


class Leadership(Protocol):
    """Whether this instance is the leader, and where the leader is."""

    @property
    def is_leader(self) -> bool: ...

    @property
    def own_url(self) -> str:
        """The URL at which other instances reach this one."""
        ...

    @property
    def leader_url(self) -> str | None:
        """The leader's URL; `None` while there is no leader, and while this instance is the leader."""
        ...

    async def wait_for_leader(self, timeout_s: float) -> None:
        """Return when there is a leader; raises `UnknownLeaderError` or `StoreError` after the timeout."""
        ...

    @property
    def cluster_id(self) -> str: ...


class SoleLeadership:
    """Leadership of a single instance, which is always the leader."""

    is_leader = True
    own_url = "http://localhost:8081"
    leader_url: str | None = None
    cluster_id = "moldau"

    async def wait_for_leader(self, timeout_s: float) -> None:
        return None


class ElectedLeadership:
    """Leadership by an election; its failures are raised as registry errors."""

    def __init__(self, election: Election, cluster_id: str) -> None:
        self._election = election
        self.cluster_id = cluster_id
        self.own_url = election.own_url

    @property
    def is_leader(self) -> bool:
        return self._election.is_leader

    @property
    def leader_url(self) -> str | None:
        return self._election.leader_url

    async def wait_for_leader(self, timeout_s: float) -> None:
        try:
            await self._election.wait_for_leader(timeout_s)
        except NoLeaderError as error:
            raise UnknownLeaderError(str(error)) from None
        except UnreachableError as error:
            raise StoreError(f"Writes fail at the moment, reads still work: {error}") from None


class InstanceIdentity(NamedTuple):
    host: str
    port: int
    is_eligible: bool = True
    scheme: str = "http"

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def document(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.is_eligible,
            "scheme": self.scheme,
        }

    def encode(self) -> bytes:
        return _encode(self.document())

    @classmethod
    def decode(cls, content: bytes) -> InstanceIdentity | None:
        """Decode another member's metadata; `None` if it is invalid."""
        try:
            return cls._of(json.loads(content))
        except (ValueError, KeyError, TypeError):
            return None

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> InstanceIdentity:
        return cls(
            str(document["host"]),
            int(document["port"]),
            bool(document.get("master_eligibility", True)),
            str(document.get("scheme") or "http"),
        )


class Assignment(NamedTuple):
    """The assignment sent to every member, the same for all: who the leader is."""

    leader_member: str | None = None
    leader: InstanceIdentity | None = None
    error: int = NO_ERROR

    def encode(self) -> bytes:
        document: dict[str, Any] = {"version": VERSION, "error": self.error}
        if self.leader_member is not None and self.leader is not None:
            document |= {"master": self.leader_member, "master_identity": self.leader.document()}
        return _encode(document)


class RegistryProtocol:
    """The group protocol of schema registries, for one member."""

    protocol_type = PROTOCOL_TYPE
    name = PROTOCOL

    def __init__(self, identity: InstanceIdentity) -> None:
        self._identity = identity

    def metadata(self) -> bytes:
        return self._identity.encode()

    def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        return dict.fromkeys(members, elect(members).encode())

    def read_leader(self, assignment: bytes) -> Leader:
        found = decode_assignment(assignment)
        if found.error != NO_ERROR:
            url = self._identity.url
            return Leader(error=f"two instances call themselves {url}: give each a host.name of its own")
        return Leader(None if found.leader is None else found.leader.url)


def elect(members: Mapping[str, bytes]) -> Assignment:
    """The assignment: the eligible member with the smallest URL leads. Two members with the same URL are an error."""
    identities = {name: InstanceIdentity.decode(content) for name, content in members.items()}
    known = {name: identity for name, identity in identities.items() if identity is not None}
    urls = [identity.url for identity in known.values()]
    error = DUPLICATE_URLS if len(set(urls)) < len(urls) else NO_ERROR
    eligible = [(identity.url, name) for name, identity in known.items() if identity.is_eligible]
    if not eligible:
        return Assignment(error=error)
    _, leader = min(eligible)
    return Assignment(leader, known[leader], error)


def decode_assignment(content: bytes) -> Assignment:
    """Decode an assignment; an invalid one has no leader."""
    try:
        document = json.loads(content)
        identity = document.get("master_identity")
        leader = None if identity is None else InstanceIdentity.decode(_encode(identity))
        return Assignment(document.get("master"), leader, int(document.get("error", NO_ERROR)))
    except (ValueError, TypeError, AttributeError):
        return Assignment()


def _encode(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
