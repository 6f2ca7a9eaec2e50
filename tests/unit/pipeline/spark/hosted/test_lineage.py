"""The steps from a record to its lineage: written into rows, read back, and one longer with every stage."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.pipeline.spark.hosted.ordering import Lineage

STEPS = st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=4))


def written(paths: list[list[int]]) -> list[bytes]:
    return [np.array(steps, ">u4").tobytes() for steps in paths]


def read(paths: list[list[int]]) -> Lineage:
    return Lineage.of(pa.chunked_array([pa.array(written(paths), pa.binary())]))


@settings(deadline=None)
@given(STEPS)
def test_what_is_written_is_read(paths: list[list[int]]) -> None:
    assert read(paths).column().to_pylist() == written(paths)


@settings(deadline=None)
@given(STEPS, st.integers(0, 5), st.integers(0, 5))
def test_rows_cut_out_of_a_table_keep_their_steps(paths: list[list[int]], start: int, length: int) -> None:
    column = pa.chunked_array([pa.array(written(paths), pa.binary()).slice(start, length)])
    assert Lineage.of(column).column().to_pylist() == written(paths)[start : start + length]


@settings(deadline=None)
@given(STEPS)
def test_an_offspring_has_the_steps_of_its_cause_and_one_more(paths: list[list[int]]) -> None:
    causes = [index for index in range(len(paths)) for _ in range(2)]
    nth = [0, 7] * len(paths)
    found = read(paths).next(np.array(causes, np.int64), np.array(nth, np.int64)).column().to_pylist()
    assert found == written([[*paths[cause], step] for cause, step in zip(causes, nth, strict=True)])


def test_rows_of_a_record_from_a_topic_have_one_step() -> None:
    assert Lineage.first(np.array([0, 1, 300])).column().to_pylist() == written([[0], [1], [300]])


def test_rows_are_taken_and_cut_as_their_table_is() -> None:
    paths = [[1], [], [2, 3]]
    assert read(paths).take([2, 0]).column().to_pylist() == written([[2, 3], [1]])
    assert read(paths).slice(1, 3).column().to_pylist() == written([[], [2, 3]])
