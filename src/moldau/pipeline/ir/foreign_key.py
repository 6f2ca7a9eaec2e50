"""The steps of a foreign-key join (KIP-213), each of which runs where its data is partitioned.

`ForeignKeySubscribe` runs next to the left table and sends the right side a subscription per left row.
`ForeignKeyLookup` runs next to the right table, stores the subscriptions and sends responses. `ForeignKeyResolve` is
partitioned by the left key and joins the responses with the left rows that `ForeignKeyRows` sends there directly.
`Repartition`s connect the steps. In Kafka Streams responses flow back to the left table; here they flow to a copy of
it, so that no sub-topology feeds itself. Front ends build a `ForeignKeyJoin`, which `rewrites.foreign_key` lowers to
these steps. The messages are `Subscription`, `Response` and `LeftRow`. Start at `ForeignKeySubscribe`.
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
    """Delete it and send no response."""
    UNSUBSCRIBE_AND_ANSWER = 1
    """Delete it and respond that there is no right row."""
    ANSWER = 2
    """Store it and respond, also where there is no right row."""
    ANSWER_IF_FOUND = 3
    """Store it and respond if there is a right row."""


class Subscription(NamedTuple):
    """One left row's subscription to a right row; its key is serialized with the left table's key serde."""

    instruction: Instruction
    primary_key: bytes
    primary_partition: int
    digest: bytes | None
    """Identifies the version of the left row; None where it was deleted."""


class Response(NamedTuple):
    """The right row, if any, for the foreign key of a left row."""

    primary_partition: int
    digest: bytes | None
    """That of the subscription: if the left row has changed since, this response is outdated and ignored."""
    right: bytes | None


class LeftRow(NamedTuple):
    """The current left row, None where it was deleted."""

    primary_partition: int
    value: bytes | None


DIGEST_SIZE = 16

_SUBSCRIPTION = struct.Struct(">Bi?")
_RESPONSE = struct.Struct(">i?")
_ROW = struct.Struct(">i?")


class _InternalSerde:
    """Base of the serdes of messages between the steps."""

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
    """Subscriptions in the repartitioning to the right side, and in the store there."""

    def encode(self, value: Subscription) -> bytes:
        head = _SUBSCRIPTION.pack(value.instruction.value, value.primary_partition, value.digest is not None)
        return head + (value.digest or b"") + value.primary_key

    def decode(self, data: bytes) -> Subscription:
        instruction, partition, has_digest = _SUBSCRIPTION.unpack_from(data)
        split = _SUBSCRIPTION.size + (DIGEST_SIZE if has_digest else 0)
        digest = data[_SUBSCRIPTION.size : split] if has_digest else None
        return Subscription(Instruction(instruction), data[split:], partition, digest)


class ResponseSerde(_InternalSerde):
    """Responses in the repartitioning by left key.

    A right value of zero bytes is read as None, as in Kafka Streams.
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
    """Left rows in the repartitioning to `ForeignKeyResolve`."""

    def encode(self, value: LeftRow) -> bytes:
        return _ROW.pack(value.primary_partition, value.value is not None) + (value.value or b"")

    def decode(self, data: bytes) -> LeftRow:
        partition, has_value = _ROW.unpack_from(data)
        return LeftRow(partition, data[_ROW.size :] if has_value else None)


@node
class ForeignKeySubscribe(OneInput):
    """Turn changes of the left table into subscriptions, keyed by what `extractor` (value), or (key, value), returns.

    A null foreign key makes no subscription; in a left join it is forwarded with a null key, so that it is answered.
    """

    extractor: Function
    extractor_has_key: bool
    kind: JoinKind
    left_table: Materialization
    foreign_key_serde: Serde


@node
class ForeignKeyRows(OneInput):
    """Rows of the left table, unchanged, for `ForeignKeyResolve`."""

    left_table: Materialization


@node
class ForeignKeyLookup(Join):
    """Join subscriptions (left) with the right table: a change of either side sends responses, keyed by the left key.

    `joiner` and `has_key` are those of the whole join and not used here.
    """

    left_table: Materialization
    right_table: Materialization
    subscriptions: Materialization
    """Subscriptions by right key."""


@node
class ForeignKeyResolve(Join):
    """Join left rows (left) with responses (right) into rows of the result; gives a table."""

    left_table: Materialization
    right_table: Materialization
    rows: Materialization
    """The left rows, serialized."""
    table: Materialization
