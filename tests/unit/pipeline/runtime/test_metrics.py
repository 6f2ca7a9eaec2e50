"""Batches are counted by their offsets, and the lag is what lies behind them."""

from __future__ import annotations

from moldau.core.ids import TopicPartition
from moldau.pipeline.runtime.metrics import PipelineMetrics

ONE, TWO = TopicPartition("in", 0), TopicPartition("in", 1)


def test_nothing_has_happened_yet() -> None:
    numbers = PipelineMetrics().snapshot({ONE: 5})

    assert (numbers.batch, numbers.records_in, numbers.lag) == (None, 0, 0)


def test_records_are_counted_from_where_the_pipeline_began() -> None:
    metrics = PipelineMetrics()
    metrics.count_from({ONE: 100, TWO: 0})
    metrics.count_batch(7, {ONE: 110, TWO: 5}, 4)
    metrics.count_batch(8, {ONE: 111, TWO: 5}, 1)

    numbers = metrics.snapshot({ONE: 120, TWO: 5})

    assert (numbers.batch, numbers.records_in, numbers.records_out) == (8, 16, 5)
    assert numbers.lag_by_partition == {ONE: 9, TWO: 0}
    assert numbers.lag == 9
    assert 0 < numbers.input_rate <= 16


def test_a_restart_does_not_count_twice() -> None:
    metrics = PipelineMetrics()
    metrics.count_from({ONE: 0})
    metrics.count_batch(0, {ONE: 10}, 10)
    metrics.count_from({ONE: 0})
    metrics.count_batch(0, {ONE: 10}, 0)

    assert metrics.snapshot({}).records_in == 10


def test_spark_tells_the_size_of_state_and_the_time_of_a_batch() -> None:
    metrics = PipelineMetrics()
    operators = [{"numRowsTotal": 3, "memoryUsedBytes": 100}, {"numRowsTotal": 4, "memoryUsedBytes": 50}]
    metrics.note_progress({"batchDuration": 42, "stateOperators": operators})

    numbers = metrics.snapshot({})

    assert (numbers.batch_ms, numbers.state_records, numbers.state_bytes) == (42, 7, 150)
    assert numbers.as_dict()["state-records"] == 7
