"""The file of offsets for kafka-delete-records."""

from __future__ import annotations

import pytest

from moldau.cli.records.delete import parse_offsets
from moldau.cli.tool import ToolError
from moldau.core.ids import TopicPartition


def test_offsets_by_partition() -> None:
    text = '{"partitions": [{"topic": "t", "partition": 0, "offset": 3}], "version": 1}'
    assert parse_offsets(text) == {TopicPartition("t", 0): 3}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not a valid JSON"),
        ("[]", "Missing partitions field"),
        ("{}", "Missing partitions field"),
        ('{"partitions": [], "version": 2}', "Not supported version field value 2"),
        ('{"partitions": [{"topic": "t"}]}', "needs topic, partition and offset"),
        ('{"partitions": ["x"]}', "needs topic, partition and offset"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "offset": 3}, {"topic": "t", "partition": 0, "offset": 4}'
            "]}",
            "duplicate topic partitions: t-0",
        ),
    ],
)
def test_anything_else_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ToolError, match=complaint):
        parse_offsets(text)
