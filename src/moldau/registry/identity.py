"""Who registries are to each other in their group, and whom they elect: documents as all registries write them.

Pure. Start at `elected`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["PROTOCOL", "PROTOCOL_TYPE", "Assignment", "InstanceIdentity", "decode_assignment", "elected"]

PROTOCOL_TYPE = "sr"
PROTOCOL = "v0"
VERSION = 1
NO_ERROR, DUPLICATE_URLS = 0, 1


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
        """Read what another member says of itself; `None` where that cannot be understood."""
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
    """What every member is told: who leads. All are told the same."""

    leader_member: str | None = None
    leader: InstanceIdentity | None = None
    error: int = NO_ERROR

    def encode(self) -> bytes:
        document: dict[str, Any] = {"version": VERSION, "error": self.error}
        if self.leader_member is not None and self.leader is not None:
            document |= {"master": self.leader_member, "master_identity": self.leader.document()}
        return _encode(document)


def elected(members: Mapping[str, bytes]) -> Assignment:
    """The eligible member with the smallest URL leads. Two with one URL could not be told apart: an error."""
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
    """Read an assignment; one that cannot be understood names no leader."""
    try:
        document = json.loads(content)
        identity = document.get("master_identity")
        leader = None if identity is None else InstanceIdentity.decode(_encode(identity))
        return Assignment(document.get("master"), leader, int(document.get("error", NO_ERROR)))
    except (ValueError, TypeError, AttributeError):
        return Assignment()


def _encode(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
