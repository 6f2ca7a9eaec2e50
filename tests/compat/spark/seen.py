"""What Spark saw, in a form that two brokers can be compared by.

Each test boils its rows down to counts, offsets and a checksum, and `Seen` holds that against what the same test
saw on Apache Kafka, kept in `seen_on_kafka.json`. Start at `summary` and `Seen`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

__all__ = ["COLUMNS", "HEADER_COLUMNS", "Seen", "rows_of", "summary"]

RECORDED = Path(__file__).with_name("seen_on_kafka.json")
COLUMNS = ("topic", "partition", "offset", "unix_millis(timestamp) AS timestamp_ms", "timestampType", "key", "value")
HEADER_COLUMNS = (*COLUMNS, "headers")


def rows_of(frame: DataFrame, columns: Iterable[str] = COLUMNS) -> list[Row]:
    """Collect what a Kafka source gave, ordered by topic, partition and offset."""
    return sorted(frame.selectExpr(*columns).collect(), key=lambda row: (row.topic, row.partition, row.offset))


def summary(rows: Iterable[Row], *, without: Iterable[str] = ()) -> dict[str, Any]:
    """Offsets and number of the records of each partition, and a checksum of all that was in them."""
    left_out = frozenset(without)
    digest, partitions = hashlib.sha256(), dict[str, list[int]]()
    for row in rows:
        first, _, count = partitions.get(f"{row.topic}-{row.partition}", (row.offset, 0, 0))
        partitions[f"{row.topic}-{row.partition}"] = [first, row.offset, count + 1]
        kept = {name: _plain(value) for name, value in row.asDict(recursive=True).items() if name not in left_out}
        digest.update(json.dumps(kept, sort_keys=True).encode())
    return {"first, last, count": partitions, "sha256": digest.hexdigest()}


class Seen:
    """Compares one test's sights with Apache Kafka's, or writes them down where `record` is set."""

    def __init__(self, test: str, *, record: bool) -> None:
        self._test = test
        self._record = record

    def __call__(self, **sights: Any) -> None:
        """Everything given must be what Apache Kafka showed for the same test."""
        recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
        if self._record:
            recorded[self._test] = sights
            RECORDED.write_text(_rendered(recorded))
        assert json.loads(json.dumps(sights)) == recorded[self._test]


def _rendered(recorded: dict[str, dict[str, Any]]) -> str:
    """JSON with a line for each sight, so that a change shows what changed."""
    tests = []
    for test in sorted(recorded):
        sights = [f"  {json.dumps(name)}: {json.dumps(sight)}" for name, sight in sorted(recorded[test].items())]
        tests.append(f" {json.dumps(test)}: {{\n" + ",\n".join(sights) + "\n }")
    return "{\n" + ",\n".join(tests) + "\n}\n"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value
