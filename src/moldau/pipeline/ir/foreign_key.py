"""The three steps of a foreign-key join, each where its data is.

`ForeignKeySubscribe` runs beside the left table and tells the right side which row wants which right key;
`ForeignKeyLookup` runs beside the right table, remembers that, and answers; `ForeignKeyResolve` runs where the left
keys are and joins. Between them lie two `Repartition`s. Front ends build a `ForeignKeyJoin`; `rewrites.foreign_key`
makes these of it. The left value travels along, so the last step needs no table: nothing ever flows back. What the
steps say to each other is `Subscription` and `Response`. Start at `ForeignKeySubscribe`.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Any, NamedTuple

from moldau.pipeline.ir.functions import Function
from moldau.pipeline.ir.nodes import Join, JoinKind, Materialization, OneInput, node
from moldau.pipeline.ir.serdes import Serde

__all__ = [
    "ForeignKeyLookup",
    "ForeignKeyResolve",
    "ForeignKeySubscribe",
    "Instruction",
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
    """One left row that wants to know about a right row. Key and value are bytes as the left table writes them."""

    instruction: Instruction
    primary_key: bytes
    primary_partition: int
    value: bytes | None
    """The left row as it is now; None where it was deleted."""


class Response(NamedTuple):
    """What the right side knows about the right key of a left row."""

    primary_partition: int
    left: bytes | None
    right: bytes | None


_SUBSCRIPTION = struct.Struct(">BiI?")
_RESPONSE = struct.Struct(">i??I")


class SubscriptionSerde:
    """Subscriptions on their way to the right side, and in the store there."""

    is_plain = True

    def encode(self, value: Subscription) -> bytes:
        head = _SUBSCRIPTION.pack(
            value.instruction.value, value.primary_partition, len(value.primary_key), value.value is not None
        )
        return head + value.primary_key + (value.value or b"")

    def decode(self, data: bytes) -> Subscription:
        instruction, partition, length, has_value = _SUBSCRIPTION.unpack_from(data)
        split = _SUBSCRIPTION.size + length
        key = data[_SUBSCRIPTION.size : split]
        return Subscription(Instruction(instruction), key, partition, data[split:] if has_value else None)

    def serialize(self, topic: str, value: Any, /) -> bytes:
        return self.encode(value)

    def deserialize(self, topic: str, data: bytes, /) -> Any:
        return self.decode(data)


class ResponseSerde:
    """Responses on their way back to where the left keys are."""

    is_plain = True

    def encode(self, value: Response) -> bytes:
        left, right = value.left or b"", value.right or b""
        flags = value.left is not None, value.right is not None
        return _RESPONSE.pack(value.primary_partition, *flags, len(left)) + left + right

    def decode(self, data: bytes) -> Response:
        partition, has_left, has_right, length = _RESPONSE.unpack_from(data)
        split = _RESPONSE.size + length
        left, right = data[_RESPONSE.size : split], data[split:]
        return Response(partition, left if has_left else None, right if has_right else None)

    def serialize(self, topic: str, value: Any, /) -> bytes:
        return self.encode(value)

    def deserialize(self, topic: str, data: bytes, /) -> Any:
        return self.decode(data)


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
class ForeignKeyLookup(Join):
    """Subscriptions (left) meet the right table: each side's change makes responses, keyed by the left key.

    `joiner` and `has_key` are those of the whole join and not used here.
    """

    left_table: Materialization
    right_table: Materialization
    subscriptions: Materialization
    """Subscriptions by the bytes of right and left key together."""


@node
class ForeignKeyResolve(OneInput):
    """Responses become rows: `joiner` (left value, right value), or (key, left, right); gives a table."""

    joiner: Function
    has_key: bool
    kind: JoinKind
    left_table: Materialization
    right_table: Materialization
    table: Materialization
