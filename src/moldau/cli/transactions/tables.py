"""The tables of kafka-transactions: padded to the widest cell, a tab after every column. Start at `table_lines`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = [
    "HANGING_COLUMNS",
    "LIST_COLUMNS",
    "PRODUCER_COLUMNS",
    "TRANSACTION_COLUMNS",
    "render_number",
    "table_lines",
]

LIST_COLUMNS = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
TRANSACTION_COLUMNS = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)
PRODUCER_COLUMNS = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
HANGING_COLUMNS = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)


def render_number(number: int | None) -> str:
    return "None" if number is None else str(number)


def table_lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [columns, *rows]
    widths = [max(len(line[position]) for line in lines) for position in range(len(columns))]
    return ["".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True)) for line in lines]
