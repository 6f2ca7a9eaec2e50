"""Functions that hold what cannot be copied are named before they are sent."""

from __future__ import annotations

import threading

import pytest

from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.spark.hosted.work import StageWork, UnsendableError, pickled_work
from moldau.streams import Consumed, KStream, Materialized, Produced, Record, StreamsBuilder, StringSerde


class LockedSerde:
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def serialize(self, topic: str, value: str, /) -> bytes:
        return value.encode()

    def deserialize(self, topic: str, data: bytes, /) -> str:
        return data.decode()


def work_of(builder: StreamsBuilder) -> StageWork:
    sub_topologies = dict(enumerate(builder.build().subtopologies))
    return StageWork("id", 0, sub_topologies, {}, frozenset(), {}, {}, {}, frozenset(), {}, {}, TaskSettings())


def stream_of(builder: StreamsBuilder) -> KStream:
    return builder.stream("in", Consumed.with_(StringSerde(), StringSerde()))


def test_a_function_is_named_with_its_line() -> None:
    lock = threading.Lock()

    def careful(value: str) -> str:
        with lock:
            return value

    builder = StreamsBuilder()
    stream_of(builder).map_values(str.upper).map_values(careful).to("out")

    with pytest.raises(
        UnsendableError,
        match=r"^careful \(test_work.py:\d+\) cannot be sent to Spark's workers: cannot pickle .*lock.*; make locks",
    ):
        pickled_work(work_of(builder))


def test_functions_of_an_aggregation_are_named_too() -> None:
    lock = threading.Lock()
    builder = StreamsBuilder()
    stream_of(builder).group_by_key().aggregate(
        str, lambda key, value, total: (lock, total)[1], Materialized.with_(StringSerde(), StringSerde())
    )

    with pytest.raises(UnsendableError, match=r"^<lambda> \(test_work.py:\d+\)"):
        pickled_work(work_of(builder))


def test_a_processor_is_named_by_its_class() -> None:
    lock = threading.Lock()

    class Careful:
        def process(self, record: Record) -> None:
            lock.acquire()

    builder = StreamsBuilder()
    stream_of(builder).process(Careful).to("out", Produced.with_(StringSerde(), StringSerde()))

    with pytest.raises(UnsendableError, match=r"^Careful \(test_work.py:\d+\)"):
        pickled_work(work_of(builder))


def test_a_serde_is_named_with_the_line_of_its_operator() -> None:
    builder = StreamsBuilder()
    stream_of(builder).to("out", Produced.with_(StringSerde(), LockedSerde()))

    with pytest.raises(UnsendableError, match=r"^LockedSerde \(test_work.py:\d+\)"):
        pickled_work(work_of(builder))


def test_what_can_be_copied_arrives() -> None:
    from pyspark.cloudpickle import loads

    builder = StreamsBuilder()
    stream_of(builder).map_values(lambda value: value + "!").to("out")

    nodes = loads(pickled_work(work_of(builder))).sub_topologies[0].nodes
    assert [node.name for node in nodes] == [node.name for node in builder.build().nodes]
