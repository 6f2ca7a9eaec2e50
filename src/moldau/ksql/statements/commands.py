"""Statements that change what a server knows, as records of the command topic.

A record's key is the command's id, its value the statement with everything that was known when it was accepted: the
columns that the registry gave, the properties of the session, the end offsets that a query starts from. So replaying
the topic needs nothing from outside, and every server that reads it knows the same. Start at `Command`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.core.errors import MoldauError
from moldau.ksql.statements.facts import Facts

__all__ = ["Command", "CommandError", "CommandId"]

VERSION = 1


class CommandError(MoldauError):
    """A record of the command topic that this version cannot read."""


@dataclass(frozen=True, slots=True)
class CommandId:
    """What a command is about, as clients see it in `/status`."""

    type: str
    entity: str
    action: str

    def __str__(self) -> str:
        return f"{self.type}/{self.entity}/{self.action}"

    @classmethod
    def parse(cls, text: str) -> CommandId:
        """The id from its text; the entity may contain slashes."""
        kind, _, rest = text.partition("/")
        entity, _, action = rest.rpartition("/")
        if not (kind and entity and action):
            raise CommandError(f"{text!r} is not a command id: type/entity/action")
        return cls(kind, entity, action)

    @classmethod
    def of_source(cls, kind: str, name: str, action: str) -> CommandId:
        """The id of a command about a stream, table or type."""
        return cls(kind, f"`{name}`", action)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One accepted statement."""

    id: CommandId
    statement: str
    """The statement as it was written, with variables replaced."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    """The properties of the session and request that accepted it."""
    facts: Facts = field(default_factory=Facts)
    """What topics and registry said when the statement was accepted."""
    start_offsets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Where a new query starts to read, by topic and partition, where the session asked for `latest`."""

    def key(self) -> bytes:
        """The record's key."""
        return str(self.id).encode()

    def value(self) -> bytes:
        """The record's value."""
        return json.dumps(self.document(), ensure_ascii=False).encode()

    def document(self) -> dict[str, Any]:
        """Everything but the id, as JSON."""
        return {
            "version": VERSION,
            "statement": self.statement,
            "properties": dict(self.properties),
            "facts": self.facts.document(),
            "startOffsets": {topic: dict(offsets) for topic, offsets in self.start_offsets.items()},
        }

    @classmethod
    def of_record(cls, key: bytes | None, value: bytes | None) -> Command:
        """The command of a record; raises `CommandError`."""
        try:
            return cls.of_document(CommandId.parse((key or b"").decode()), json.loads(value or b""))
        except (ValueError, KeyError, TypeError) as error:
            raise CommandError(f"the command topic has a record that is not a command: {error}") from None

    @classmethod
    def of_document(cls, command: CommandId, document: Mapping[str, Any]) -> Command:
        """The command of `document`; raises `CommandError` if it is of a later version."""
        version = document["version"]
        if version > VERSION:
            raise CommandError(
                f"the command topic has a command of version {version}, this server reads {VERSION}: "
                "upgrade this server"
            )
        return cls(
            id=command,
            statement=document["statement"],
            properties=document["properties"],
            facts=Facts.of_document(document["facts"]),
            start_offsets=document["startOffsets"],
        )
