"""How many partitions repartitionings have, and which topics cannot be joined."""

from __future__ import annotations

import pytest
from tests.unit.pipeline.ir.small_nodes import (
    count,
    global_table,
    join_global,
    join_streams,
    join_table,
    repartition,
    stream,
    table,
)

from moldau.pipeline.ir.copartitioning import partition_counts, task_count
from moldau.pipeline.ir.errors import CopartitioningError


def test_a_repartitioning_has_as_many_as_what_feeds_it() -> None:
    source = stream("in")
    moved = repartition("moved", source)
    assert partition_counts((source, moved, count("c", moved)), {"in": 3})["moved-repartition"] == 3


def test_a_count_that_was_asked_for_stays() -> None:
    source = stream("in")
    moved = repartition("moved", source, partitions=7)
    counts = partition_counts((source, moved, count("c", moved)), {"in": 3})
    assert counts["moved-repartition"] == 7
    assert task_count((moved,), counts) == 7


def test_a_repartitioning_follows_the_topic_it_is_joined_with() -> None:
    source, rows = stream("in"), table("rows")
    moved = repartition("moved", source)
    counts = partition_counts((source, rows, moved, join_table("j", moved, rows)), {"in": 3, "rows": 5})
    assert counts["moved-repartition"] == 5


def test_topics_of_different_counts_cannot_be_joined() -> None:
    one, two = stream("one"), stream("two")
    with pytest.raises(CopartitioningError, match="one has 2, two has 3"):
        partition_counts((one, two, join_streams("j", one, two)), {"one": 2, "two": 3})


def test_a_global_table_joins_whatever_its_count() -> None:
    source, everywhere = stream("in"), global_table("everywhere")
    nodes = (source, everywhere, join_global("j", source, everywhere))
    assert partition_counts(nodes, {"in": 3, "everywhere": 5}) == {"in": 3, "everywhere": 5}
