from __future__ import annotations

from heapq import merge

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.pipeline.spark.hosted.ordering import Lineage, clocks, is_sorted, processing_order

Record = tuple[int, int, int, int]
"""(lane, partition, offset, timestamp)"""


def numbers(rows: list[Record], column: int) -> np.ndarray:
    return np.array([row[column] for row in rows], np.int64)


def taken(rows: list[Record]) -> list[Record]:
    lane, partition, offset, timestamp = (numbers(rows, column) for column in range(4))
    clock = clocks(timestamp, lane, partition, offset)
    return [rows[index] for index in processing_order(clock, lane, partition, offset, None)]


def smallest_head_first(rows: list[Record]) -> list[Record]:
    """What Kafka Streams does, told literally."""
    queues: dict[tuple[int, int], list[Record]] = {}
    for row in sorted(rows):
        queues.setdefault(row[:2], []).append(row)
    result = []
    while queues:
        place = min(queues, key=lambda one: (queues[one][0][3], one))
        result.append(queues[place].pop(0))
        if not queues[place]:
            del queues[place]
    return result


def distinct_offsets(drawn: list[tuple[int, int, int]]) -> list[Record]:
    return [(lane, partition, offset, timestamp) for offset, (lane, partition, timestamp) in enumerate(drawn)]


records = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 9)), max_size=40).map(
    distinct_offsets
)


@settings(deadline=None)
@given(records, st.randoms())
def test_the_partition_with_the_smallest_next_timestamp_goes_first(rows: list[Record], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert taken(shuffled) == smallest_head_first(rows)


@settings(deadline=None)
@given(records, st.integers(0, 40))
def test_it_does_not_matter_where_batches_are_cut(rows: list[Record], cut: int) -> None:
    whole = taken(rows)
    assert taken(whole[:cut]) + taken(whole[cut:]) == whole


@settings(deadline=None)
@given(records)
def test_rows_that_need_no_sorting_are_recognised(rows: list[Record]) -> None:
    lane, partition, offset, timestamp = (numbers(rows, column) for column in range(4))
    clock = clocks(timestamp, lane, partition, offset)
    if is_sorted(clock, lane, partition, offset):
        assert list(processing_order(clock, lane, partition, offset, None)) == list(range(len(rows)))


def test_late_records_of_a_partition_stay_late() -> None:
    assert taken([(0, 0, 0, 10), (0, 0, 1, 5)]) == [(0, 0, 0, 10), (0, 0, 1, 5)]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.sampled_from([0, 1, 2, 300]), max_size=3))))
def test_behind_a_repartition_fewer_hops_come_first_and_then_what_was_forwarded_first(
    rows: list[tuple[int, list[int]]],
) -> None:
    offsets = np.array([offset for offset, _ in rows], np.int64)
    same = np.zeros(len(rows), np.int64)
    order = processing_order(same, same, same, offsets, lineage([steps for _, steps in rows])).tolist()
    keys = [(offset, len(steps), steps) for offset, steps in rows]
    assert order == sorted(range(len(rows)), key=keys.__getitem__)


def lineage(paths: list[list[int]]) -> Lineage:
    """What rows with these steps carry, as it arrives: in pieces, and null where there is no step."""
    whole = [np.array(steps, ">u4").tobytes() or None for steps in paths]
    half = len(whole) // 2
    return Lineage.of(pa.chunked_array([pa.array(whole[:half], pa.binary()), pa.array(whole[half:], pa.binary())]))


def test_merge_is_what_heapq_would_do_for_partitions_in_time_order() -> None:
    one = [(0, 0, offset, time) for offset, time in enumerate((1, 4, 9))]
    other = [(0, 1, offset, time) for offset, time in enumerate((2, 4, 5))]
    assert taken(other + one) == list(merge(one, other, key=lambda row: (row[3], row[1])))
