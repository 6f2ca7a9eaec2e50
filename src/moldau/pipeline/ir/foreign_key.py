"""The steps of a foreign-key join, each where its data is.

`ForeignKeySubscribe` runs beside the left table and tells the right side which row wants which right key;
`ForeignKeyLookup` runs beside the right table, remembers that, and answers; `ForeignKeyResolve` runs where the left
keys are and joins answers with the left rows that `ForeignKeyRows` sends there directly. Between them lie
`Repartition`s. In Kafka Streams answers flow back to where the left table is; here they flow on to a copy of it, so
that no piece of a topology feeds itself. Front ends build a `ForeignKeyJoin`; `rewrites.foreign_key` makes these of
it. What the steps say to each other is `Subscription`, `Response` and `LeftRow`. Start at `ForeignKeySubscribe`.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Any, NamedTuple

from moldau.pipeline.ir.functions import Function
from moldau.pipeline.ir.nodes import Join, JoinKind, Materialization, OneInput, node
from moldau.serdes.serde import Headers, Serde

__all__ = [
    "ForeignKeyLookup",
    "ForeignKeyResolve",
    "ForeignKeyRows",
    "ForeignKeySubscribe",
    "Instruction",
    "LeftRow",
    "LeftRowSerde",
    "Response",
    "ResponseSerde",
    "Subscription",
    "SubscriptionSerde",
]


class Instruction(Enum):
    """What the right side does with a subscription."""

    UNSUBSCRIBE = 0
    """Forget it and answer nothing."""
    UNSUBSCRIBE_AND_ANSWER = 1
    """Forget it and answer that there is no right row."""
    ANSWER = 2
    """Remember it and answer, also where there is no right row."""
    ANSWER_IF_FOUND = 3
    """Remember it and answer if there is a right row."""


class Subscription(NamedTuple):
    """One left row that wants to know about a right row; its key is in bytes as the left table writes it."""

    instruction: Instruction
    primary_key: bytes
    primary_partition: int
    digest: bytes | None
    """Stands for the left row as it was; None where it was deleted."""


class Response(NamedTuple):
    """What the right side knows about the right key of a left row."""

    primary_partition: int
    digest: bytes | None
    """That of the subscription: if the left row is another by now, nobody wants this answer any more."""
    right: bytes | None


class LeftRow(NamedTuple):
    """A left row as it is, None where it was deleted."""

    primary_partition: int
    value: bytes | None


DIGEST_SIZE = 16

_SUBSCRIPTION = struct.Struct(">Bi?")
_RESPONSE = struct.Struct(">i?")
_ROW = struct.Struct(">i?")


class _InternalSerde:
    """Serdes of what only our own steps read."""

    is_plain = True
    uses_headers = False

    def encode(self, value: Any) -> bytes:
        raise NotImplementedError

    def decode(self, data: bytes) -> Any:
        raise NotImplementedError

    def serialize(self, topic: str, value: Any, headers: Headers | None = None) -> bytes:
        return self.encode(value)

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> Any:
        return self.decode(data)


class SubscriptionSerde(_InternalSerde):
    """Subscriptions on their way to the right side, and in the store there."""

    def encode(self, value: Subscription) -> bytes:
        head = _SUBSCRIPTION.pack(value.instruction.value, value.primary_partition, value.digest is not None)
        return head + (value.digest or b"") + value.primary_key

    def decode(self, data: bytes) -> Subscription:
        instruction, partition, has_digest = _SUBSCRIPTION.unpack_from(data)
        split = _SUBSCRIPTION.size + (DIGEST_SIZE if has_digest else 0)
        digest = data[_SUBSCRIPTION.size : split] if has_digest else None
        return Subscription(Instruction(instruction), data[split:], partition, digest)


class ResponseSerde(_InternalSerde):
    """Responses on their way to where the left keys are.

    A right value of no bytes at all arrives as none: that is how Kafka Streams writes them.
    """

    def encode(self, value: Response) -> bytes:
        head = _RESPONSE.pack(value.primary_partition, value.digest is not None)
        return head + (value.digest or b"") + (value.right or b"")

    def decode(self, data: bytes) -> Response:
        partition, has_digest = _RESPONSE.unpack_from(data)
        split = _RESPONSE.size + (DIGEST_SIZE if has_digest else 0)
        digest = data[_RESPONSE.size : split] if has_digest else None
        return Response(partition, digest, data[split:] or None)


class LeftRowSerde(_InternalSerde):
    """Left rows on their way to where answers are joined."""

    def encode(self, value: LeftRow) -> bytes:
        return _ROW.pack(value.primary_partition, value.value is not None) + (value.value or b"")

    def decode(self, data: bytes) -> LeftRow:
        partition, has_value = _ROW.unpack_from(data)
        return LeftRow(partition, data[_ROW.size :] if has_value else None)


@node
class ForeignKeySubscribe(OneInput):
    """Changes of the left table become subscriptions, keyed by what `extractor` (value), or (key, value), finds.

    A null foreign key makes no subscription; in a left join it goes through with a null key, to be answered.
    """

    extractor: Function
    extractor_has_key: bool
    kind: JoinKind
    left_table: Materialization
    foreign_key_serde: Serde


@node
class ForeignKeyRows(OneInput):
    """Rows of the left table as they are, for `ForeignKeyResolve`."""

    left_table: Materialization


@node
class ForeignKeyLookup(Join):
    """Subscriptions (left) meet the right table: each side's change makes responses, keyed by the left key.

    `joiner` and `has_key` are those of the whole join and not used here.
    """

    left_table: Materialization
    right_table: Materialization
    subscriptions: Materialization
    """Subscriptions by right key."""


@node
class ForeignKeyResolve(Join):
    """Left rows (left) wait for responses (right), which become rows of the result; gives a table."""

    left_table: Materialization
    right_table: Materialization
    rows: Materialization
    """The left rows as bytes."""
    table: Materialization
