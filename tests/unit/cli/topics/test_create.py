"""Replica assignments written by hand."""

from __future__ import annotations

import pytest

from moldau.cli.tool import ToolError
from moldau.cli.topics.create import parse_replica_assignment


def test_colons_separate_brokers_and_commas_partitions() -> None:
    assert parse_replica_assignment("0:1:2,1:2:0") == [[0, 1, 2], [1, 2, 0]]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("0:1:1", "duplicate entries: 1"),
        ("0:1,2", "Partition 1 has different replication factor"),
        ("a:b", "is not a replica assignment"),
        ("", "is not a replica assignment"),
    ],
)
def test_what_cannot_be_an_assignment_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ToolError, match=complaint):
        parse_replica_assignment(text)
