"""A task from outside: rows in, rows out, names of its stores, and what it tells about them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from tests.unit.pipeline.cores.piped_tables import JSON, STRING, Pipe

from moldau.pipeline.cores.builders import BUILDERS
from moldau.pipeline.cores.context import CELLS
from moldau.pipeline.cores.failures import ProcessingError
from moldau.pipeline.cores.processors import ProcessorContext
from moldau.pipeline.cores.records import InputRecord, OutputRecord, Record
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.stores.backends import MemoryBackend
from moldau.pipeline.cores.task import Task, is_stateless, store_names
from moldau.pipeline.dsl.builder import StreamsBuilder
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.pipeline.dsl.options.operators import Grouped
from moldau.pipeline.dsl.options.windows import TimeWindows
from moldau.pipeline.ir import foreign_key, row_nodes
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.subtopologies import SubTopology
from moldau.pipeline.ir.topology import Topology
from moldau.serdes.plain import LongSerde


def task_of(sub_topology: SubTopology, **given: Any) -> Task:
    backends: dict[str, MemoryBackend] = {}
    options = {
        "partition": 0,
        "partition_counts": {},
        "backends": lambda name: backends.setdefault(name, MemoryBackend()),
        "settings": TaskSettings(cache_max_bytes=0),
    }
    return Task(sub_topology, **(options | given))


def row(key: str | None, value: Any, timestamp: int = 0, offset: int = 0) -> InputRecord:
    return InputRecord(
        "in", 0, offset, timestamp, (), None if key is None else key.encode(), JSON.serialize("in", value)
    )


def word_count() -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("in").flat_map_values(str.split)
    counts = words.group_by(lambda key, word: word, Grouped.with_(STRING, STRING)).count(Materialized.as_("counts"))
    counts.to_stream().to("out")
    return builder.build().with_default_serdes(key=STRING, value=JSON)


def test_records_leave_for_the_partition_of_their_key() -> None:
    first, second = word_count().subtopologies
    (repartition,) = second.inputs
    assert isinstance(repartition, ir.Repartition)
    task = task_of(first, partition_counts={repartition.topic: 10})
    task.process("KSTREAM-SOURCE-0000000000", row("k", "21 foobar a-little-bit-long-string"))

    outputs = [OutputRecord(*output) for output in task.drain()]

    assert {output.output for output in outputs} == {repartition.name}
    # The hashes that Java's clients compute of these keys: 1173551340, 1357151166, 1161502112.
    assert [output.partition for output in outputs] == [0, 6, 2]
    assert task.drain() == []


def test_rows_of_several_inputs_are_taken_in_order() -> None:
    builder = StreamsBuilder()
    builder.stream("in").merge(builder.stream("other")).to("out")
    (sub_topology,) = builder.build().with_default_serdes(key=STRING, value=JSON).subtopologies
    task = task_of(sub_topology)
    names = [source.name for source in sub_topology.inputs]

    for name, key, value in ((names[0], "a", 1), (names[1], "b", 2), (names[0], "c", 3)):
        task.process_batch(name, (row(key, value),))

    assert [output[2] for output in task.drain()] == [b"a", b"b", b"c"]


def test_the_backends_of_a_task_are_known_before_it_runs() -> None:
    first, second = word_count().subtopologies

    assert store_names(first) == (CELLS,)
    assert set(store_names(second)) == {CELLS, "counts"}
    assert is_stateless(first)
    assert not is_stateless(second)


class Noting:
    """A processor that notes what is done to it; the one called bad fails at what `fails_at` says."""

    fails_at = ""

    def __init__(self, name: str, noted: list[str]) -> None:
        self.name = name
        self.noted = noted

    def init(self, context: ProcessorContext) -> None:
        self.note("init")

    def process(self, record: Record) -> None:
        pass

    def close(self) -> None:
        self.note("close")

    def note(self, what: str) -> None:
        self.noted.append(f"{what} {self.name}")
        if self.name == "bad" and self.fails_at == what:
            raise ValueError(what)


def noting(noted: list[str], fails_at: str = "") -> SubTopology:
    kind = type("NotingOrFailing", (Noting,), {"fails_at": fails_at})
    builder = StreamsBuilder()
    stream = builder.stream("in")
    for name in ("first", "bad", "last"):
        stream.process(lambda name=name: kind(name, noted))
    (sub_topology,) = builder.build().with_default_serdes(key=STRING, value=JSON).subtopologies
    return sub_topology


def test_asking_for_the_backends_starts_no_processor() -> None:
    noted: list[str] = []
    assert store_names(noting(noted)) == (CELLS,)
    assert noted == []


def test_all_processors_are_closed_whatever_one_of_them_raises_and_only_once() -> None:
    noted: list[str] = []
    task = task_of(noting(noted, "close"))
    noted.clear()

    with pytest.raises(ValueError, match="close"):
        task.close()
    task.close()

    assert noted == ["close first", "close bad", "close last"]


def test_a_task_that_cannot_start_closes_what_it_has_started() -> None:
    noted: list[str] = []
    with pytest.raises((ValueError, ProcessingError), match="init"):
        task_of(noting(noted, "init"))
    assert noted == ["init first", "init bad", "close first"]


def test_a_sub_topology_travels_to_a_worker() -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    sub_topology = pickle.loads(cloudpickle.dumps(word_count().subtopologies[1]))
    task = task_of(sub_topology)
    task.process(sub_topology.inputs[0].name, InputRecord("rep", 0, 0, 5, (), b"word", b"word"))

    assert [output[2:5] for output in task.drain()] == [(b"word", LongSerde().serialize("", 1), 5)]


def test_changes_of_named_stores_are_told_once() -> None:
    windows = TimeWindows.of_size_with_no_grace(10)
    pipe = Pipe(lambda stream: stream.group_by_key().windowed_by(windows).count(Materialized.as_("counts")))
    (sub_topology,) = pipe.topology.subtopologies
    task = task_of(sub_topology)
    task.process(sub_topology.inputs[0].name, row("a", "x", 13))
    assert task.changes == {}
    task.flush()

    assert task.changes == {"counts": [(b"a", LongSerde().serialize("", 1), 13, (10, 20))]}
    task.flush()
    assert task.changes == {}


def test_stores_without_a_name_are_not_told() -> None:
    pipe = Pipe(lambda stream: stream.group_by_key().count())
    (sub_topology,) = pipe.topology.subtopologies
    task = task_of(sub_topology)
    task.process(sub_topology.inputs[0].name, row("a", "x"))
    task.flush()

    assert task.changes == {}


def test_every_node_that_can_be_described_can_be_run() -> None:
    edges = {ir.Repartition, ir.ForeignKeyJoin}
    abstract = {ir.Node, ir.Source, ir.OneInput, ir.Join}
    modules = (ir, foreign_key, row_nodes)
    found = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    nodes = {kind for kind in found if issubclass(kind, ir.Node)} - abstract

    assert nodes - edges == set(BUILDERS)


@pytest.mark.parametrize("key", [None, "a"])
def test_a_sink_may_choose_the_topic_by_record(key: str | None) -> None:
    builder = StreamsBuilder()
    builder.stream("in").to(lambda key, value, record: f"{record.topic}-{value}")
    (sub_topology,) = builder.build().with_default_serdes(key=STRING, value=JSON).subtopologies
    task = task_of(sub_topology)
    task.process(sub_topology.inputs[0].name, row(key, 7))

    assert [output[1] for output in task.drain()] == ["in-7"]


def test_windows_of_a_key_are_written_to_the_partition_of_the_key() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(10)).count().to_stream().to("windows")
    stream.to("plain")
    topology = builder.build().with_default_serdes(key=STRING, value=JSON)
    (sub_topology,) = topology.subtopologies
    counts = {"windows": 10}
    task = task_of(sub_topology, partition_counts=counts)
    task.process_batch(sub_topology.inputs[0].name, [row("foobar", 1, timestamp) for timestamp in (0, 10, 20)])

    written = [(output[1], output[6]) for output in task.drain()]

    assert {partition for topic, partition in written if topic == "windows"} == {6}
    assert {partition for topic, partition in written if topic == "plain"} == {None}


def test_both_transformers_of_a_table_that_others_read_are_closed_whatever_one_of_them_raises() -> None:
    closed: list[int] = []

    class Transformer:
        def transform(self, key: Any, value: Any) -> Any:
            return value

        def close(self) -> None:
            closed.append(id(self))
            raise ValueError("cannot close")

    builder = StreamsBuilder()
    rows = builder.table("rows").transform_values(Transformer)
    builder.stream("in").join(rows, lambda value, row: row).to("out")
    (sub_topology,) = builder.build().with_default_serdes(key=STRING, value=JSON).subtopologies

    with pytest.raises(ValueError, match="cannot close"):
        task_of(sub_topology).close()

    assert len(set(closed)) == 2
