"""One partition's share of a produce request, on its way from bytes to an outcome.

`broker.produce` moves it along, `broker.body_opening` looks inside. Start at `ProduceItem`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.broker.batch_rules import RefusedBatchError
from moldau.broker.partition import Partition, Topic
from moldau.core.errors import MoldauError
from moldau.protocol.produce import ProducedPartition

if TYPE_CHECKING:
    from moldau.broker.schema_rules import SchemaClaims

__all__ = ["ProduceItem"]


class ProduceItem:
    __slots__ = (
        "batch",
        "claims",
        "end_offset",
        "error",
        "header",
        "index",
        "is_appended",
        "is_body_wanted",
        "outcome",
        "partition",
        "topic",
        "topic_key",
    )

    def __init__(self, topic_key: bytes, topic: Topic | None, index: int) -> None:
        self.topic_key = topic_key
        self.topic = topic
        self.index = index
        self.partition: Partition | None = None
        self.batch: memoryview | bytearray = bytearray()
        self.header: tuple[int, ...] = ()
        self.is_body_wanted = False
        self.claims: Sequence[SchemaClaims] = ()
        """Schema ids that the registry has to be asked about."""
        self.is_appended = False
        self.end_offset = 0
        """One past the batch's last offset, whether it was appended now or is a duplicate."""
        self.error: MoldauError | None = None
        """Why the log did not take it."""
        self.outcome: ProducedPartition | None = None

    def refuse(self, error: MoldauError) -> None:
        if isinstance(error, RefusedBatchError):
            self.outcome = ProducedPartition(
                self.index, error.error_code, record_errors=error.record_errors, error_message=str(error)
            )
        else:
            self.outcome = ProducedPartition(self.index, error.code, error_message=str(error))
