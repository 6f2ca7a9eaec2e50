"""Records processed as columns give the same outputs, state and errors as records processed one by one."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.pipeline.ksql.sql_session import SqlSession
from tests.unit.pipeline.spark.hosted.state_in_memory import StateInMemory

from moldau.core.errors import MoldauError
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.task import Task
from moldau.pipeline.spark.compiler import work_of
from moldau.pipeline.spark.failures import WorkerError
from moldau.pipeline.spark.hosted import group_run, task_rows
from moldau.pipeline.spark.hosted.group_run import RECORD_KEY, GroupRun
from moldau.pipeline.spark.hosted.host import StatelessHost
from moldau.pipeline.spark.hosted.work import Parcel
from moldau.pipeline.spark.plan import Plan, Stage, Unit
from moldau.pipeline.spark.rows import FINISHED, FROM_SOURCES, Table, open_bundles, pack_rows
from moldau.pipeline.spark.sections import cut_topology
from moldau.streams import (
    Branched,
    BytesSerde,
    Consumed,
    Grouped,
    JsonSerde,
    KStream,
    LongSerde,
    Materialized,
    Named,
    Produced,
    StreamsBuilder,
    StringSerde,
    TimeWindowedSerde,
    TimeWindows,
    Topology,
    key,
    value,
    with_key,
)

TEXT, NUMBER, RAW, ANY = StringSerde(), LongSerde(), BytesSerde(), JsonSerde()
PARTITIONS = 2
LOGGED = {"ksql.logging.processing.topic.name": "log", "deserialization.exception.handler": "continue"}
TO_TEXT = Produced.with_(TEXT, TEXT)

Lines = Callable[[StreamsBuilder, "KStream[str, str]"], None]


def maps(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    lines.filter(lambda key, value: value != "a").map_values(lambda value: value and value * 2).to("out", TO_TEXT)
    lines.filter_not(key == "k1").map(lambda key, value: (value, key)).to("other", TO_TEXT)


def flat_maps(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    lines.flat_map_values(lambda value: [value, None, value]).to("out", TO_TEXT)
    lines.flat_map(lambda key, value: ((value, key) for _ in range(2))).select_key(lambda key, value: key).to(
        "other", TO_TEXT
    )


def branches(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    found = (
        lines.peek(lambda key, value: None)
        .split(Named.as_("split-"))
        .branch(lambda key, value: key == "k1", Branched.as_("one"))
        .branch(value == "b", Branched.as_("two"))
        .default_branch(Branched.as_("rest"))
    )
    found["split-one"].merge(found["split-two"]).to("out", TO_TEXT)
    found["split-rest"].map_values_with_key(lambda key, value: f"{key}{value}").to("other", TO_TEXT)


def counts(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    counted = lines.group_by_key().count(Materialized.with_(TEXT, NUMBER))
    counted.to_stream().to("out", Produced.with_(TEXT, NUMBER))
    counted.to_stream(lambda key, count: f"{key}!").to("other", Produced.with_(TEXT, NUMBER))


def counts_of_json(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    keyed = lines.select_key(lambda key, value: {"a": [key]} if key else None)
    counted = keyed.group_by_key(Grouped.with_(ANY, TEXT)).count(Materialized.with_(ANY, NUMBER))
    counted.to_stream().to("out", Produced.with_(ANY, NUMBER))


def reduces(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    def reduced(one: str, other: str) -> Any:
        return other if len(one) > 20 else None if other == "c" else one + other

    table = lines.group_by_key().reduce(reduced, Materialized.with_(TEXT, TEXT))
    table.map_values(lambda value: value[::-1]).to_stream().to("out", TO_TEXT)


def aggregates(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    def added(key: str, value: str, found: list[str]) -> list[str]:
        found.append(value)
        return found[-5:]

    table = lines.group_by_key().aggregate(list, added, Materialized.with_(TEXT, ANY))
    table.to_stream().to("out", Produced.with_(TEXT, ANY))


def cogroups(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    longer = lines.map_values(lambda value: value and value * 2).group_by_key(Grouped.with_(TEXT, TEXT))
    both = lines.group_by_key().cogroup(lambda key, value, found: found + value)
    table = both.cogroup(longer, lambda key, value, found: found[-20:] + value).aggregate(
        str, Materialized.with_(TEXT, TEXT)
    )
    table.to_stream().to("out", TO_TEXT)


def window_counts(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    windows = lines.group_by_key().windowed_by(TimeWindows.of_size_and_grace(50, 120))
    counted = windows.count(Materialized.with_(TEXT, NUMBER))
    counted.to_stream().to("out", Produced.with_(TimeWindowedSerde(TEXT, 50), NUMBER))
    counted.to_stream(lambda windowed, count: f"{windowed.key}@{windowed.window.start}").to(
        "other", Produced.with_(TEXT, NUMBER)
    )


def inner_join(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    table = builder.table("table", Consumed.with_(TEXT, TEXT))
    lines.join(table, lambda line, row: line + row).to("out", TO_TEXT)


def left_join(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    table = builder.table("table", Consumed.with_(TEXT, ANY))
    lines.left_join(table, with_key(lambda key, line, row: f"{key}{line}{row}")).to("out", TO_TEXT)


def repartitions(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    words = lines.filter(value.is_not_null()).flat_map_values(lambda value: [value, value + "x"])
    grouped = words.group_by(lambda key, value: value if key != "k2" else None, Grouped.with_(TEXT, TEXT))
    grouped.count(Materialized.with_(TEXT, NUMBER)).to_stream().to("out", Produced.with_(TEXT, NUMBER))
    words.to("other", TO_TEXT)


TOPOLOGIES: list[Lines] = [
    maps,
    flat_maps,
    branches,
    counts,
    counts_of_json,
    reduces,
    aggregates,
    cogroups,
    window_counts,
    inner_join,
    left_join,
    repartitions,
]


def built(lines: Lines, value_serde: Any = TEXT) -> Topology:
    builder = StreamsBuilder()
    lines(builder, builder.stream("in", Consumed.with_(TEXT, value_serde)))
    return builder.build()


# --- SQL: failures of single rows go to the processing log ---------------------------------------------------------

OF = "VALUE_FORMAT='DELIMITED', PARTITIONS=2"
LINES = f"CREATE STREAM LINES (K STRING KEY, V STRING) WITH (KAFKA_TOPIC='in', {OF});"
TABLE = f"CREATE TABLE ROWS (K STRING PRIMARY KEY, R STRING) WITH (KAFKA_TOPIC='table', {OF});"
OUT = "WITH (KAFKA_TOPIC='out', VALUE_FORMAT='JSON', PARTITIONS=2)"
QUERIES = {
    "project": f"CREATE STREAM O {OUT} AS SELECT K, UCASE(V) AS V, 6 / (LEN(V) - 1) AS N, ROWPARTITION AS P, "
    "ROWOFFSET AS OFS, ROWTIME AS T FROM LINES WHERE V <> 'c';",
    "partition": f"CREATE STREAM O {OUT} AS SELECT V, K, LEN(K) / (LEN(V) - 1) AS N FROM LINES PARTITION BY V;",
    "explode": f"CREATE STREAM O {OUT} AS SELECT K, EXPLODE(ARRAY[V, V + K]) AS E FROM LINES;",
    "count": f"CREATE TABLE O {OUT} AS SELECT K, COUNT(*) AS N, MAX(V) AS M, SUM(LEN(V) / 0) AS S FROM LINES "
    "GROUP BY K;",
    "regroup": f"CREATE TABLE O {OUT} AS SELECT V, COUNT(*) AS N, SUM(LEN(K)) AS A FROM LINES GROUP BY V;",
    "having": f"CREATE TABLE O {OUT} AS SELECT K, COUNT(V) AS N FROM LINES GROUP BY K HAVING COUNT(V) > 3;",
    "window": f"CREATE TABLE O {OUT} AS SELECT K, COUNT(*) AS N FROM LINES "
    "WINDOW TUMBLING (SIZE 50 MILLISECONDS, GRACE PERIOD 120 MILLISECONDS) GROUP BY K;",
    "join": f"CREATE STREAM O {OUT} AS SELECT L.K, V, R, V + R AS B FROM LINES L JOIN ROWS R ON L.K = R.K;",
    "left join": f"CREATE STREAM O {OUT} AS SELECT L.K, V, V + R AS B FROM LINES L LEFT JOIN ROWS R ON L.K = R.K;",
}
FUSED_QUERIES = ["project", "partition", "explode", "count", "regroup", "join", "left join"]


def planned(name: str) -> Topology:
    return SqlSession(LINES, TABLE).start(QUERIES[name]).topology


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("kind", ["nulls", "no nulls", "headers"])
def test_columns_give_the_same_as_single_records_in_sql(
    name: str, kind: str, as_columns: Callable[[bool], None]
) -> None:
    ways = []
    for is_wanted in (True, False):
        as_columns(is_wanted)
        worker = Worker(planned(name), **LOGGED)
        batches = [
            random_records(seed, 200, has_nulls=kind != "no nulls", has_headers=kind == "headers") for seed in range(3)
        ]
        ways.append(([worker.run(records) for records in batches], worker.state()))
    assert ways[0] == ways[1]
    assert any(ways[0][0])


@pytest.mark.parametrize("name", FUSED_QUERIES)
def test_these_queries_are_processed_as_columns(
    name: str, as_columns: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert taken_as_columns(planned(name), as_columns, monkeypatch)


def test_what_a_query_cannot_compute_is_logged_with_its_record(as_columns: Callable[[bool], None]) -> None:
    as_columns(True)
    found = Worker(planned("project"), **LOGGED).run(random_records(1, 200, has_nulls=False))
    log = [row for rows in found.values() for row in rows if row["value"] and b"recordProcessingError" in row["value"]]
    assert len(log) > 100
    assert all(b"division by zero" in row["value"].lower() for row in log)
    assert len({row["timestamp"] for row in log}) > 50


# --- running a topology as Spark's workers would -----------------------------------------------------------------


class Worker:
    """Runs the stages of a topology, with state in dictionaries."""

    def __init__(self, topology: Topology, **settings: Any) -> None:
        topics = dict.fromkeys(("in", "table", "out", "other"), PARTITIONS)
        self._plan = Plan.of(topology, topics, 1)
        made = TaskSettings.of({"application.id": "app", "statestore.cache.max.bytes": "0", **settings})
        self._work = {stage.number: work_of(self._plan, stage, made) for stage in self._plan.stages}
        self._states = {slot: StateInMemory() for stage in self._plan.stages for slot in stage.units}
        self._offsets = count()

    def run(self, records: Sequence[tuple[Any, ...]]) -> dict[int, list[dict[str, Any]]]:
        """What leaves by each output, in order; a record is topic, partition, key, value, timestamp, headers."""
        bundled: list[pa.RecordBatch] = []
        for stage in self._plan.stages:
            rows = [*self.from_topics(stage, records), *(bundled if stage.number else [])]
            bundled = list(self._stateless(stage, rows) if stage.is_stateless else self._stateful(stage, rows))
        found: dict[int, list[dict[str, Any]]] = {}
        for cells in (batch.column("bundle").to_pylist() for batch in bundled):
            for batch in open_bundles(cells, FINISHED):
                for row in batch.to_pylist():
                    del row["topic"]  # The output's number tells it, whether it is there or not.
                    found.setdefault(row["output"], []).append(row)
        return found

    def state(self) -> list[Any]:
        """All that is stored, without the random marks."""
        found = []
        for slot, state in sorted(self._states.items()):
            for (name, data), stored in sorted(state.entries.items()):
                found.append((slot, name, data, pickle.loads(stored)[1:] if data == RECORD_KEY else stored))
        return found

    def from_topics(self, stage: Stage, records: Sequence[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
        """The records of topics that a stage reads."""
        own = {sub_topology.index for sub_topology in stage.sub_topologies}
        points = {point.topic: point for point in self._plan.inputs if own & set(point.sub_topologies)}
        chosen = [record for record in records if record[0] in points]
        if not chosen:
            return
        topics, partitions, keys, values, timestamps, headers = zip(*chosen, strict=True)
        slots = [
            stage.slot_of.get(Unit(points[topic].sub_topologies[0], partition), 0)
            for topic, partition in zip(topics, partitions, strict=True)
        ]
        columns = {
            "slot": slots,
            "input": [points[topic].index for topic in topics],
            "partition": list(partitions),
            "offset": [next(self._offsets) for _ in topics],
            "timestamp": list(timestamps),
            "key": list(keys),
            "value": list(values),
            "headers": [[{"key": name, "value": data} for name, data in one] or None for one in headers],
        }
        yield pack_rows(len(chosen), columns, FROM_SOURCES)

    def _stateless(self, stage: Stage, rows: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return StatelessHost(Parcel.of(self._work[stage.number], shares_folders=True))(iter(rows))

    def _stateful(self, stage: Stage, rows: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work = self._work[stage.number]
        for slot in sorted({slot for batch in rows for slot in batch.column("slot").to_pylist()}):
            own = [batch.filter(pa.compute.equal(batch.column("slot"), slot)) for batch in rows]
            table = Table([batch for batch in own if batch.num_rows])
            if slot < 0:
                yield from table.bundles()
            else:
                yield from GroupRun(work, slot, self._states[slot]).run(table)


def random_records(seed: int, rows: int, *, has_nulls: bool = True, has_headers: bool = False) -> list[tuple[Any, ...]]:
    chance = random.Random(seed)
    keys = [b"k1", b"k2", b"k3", b"\xc3\xa4", *([None] if has_nulls else [])]
    values = [b"a", b"b", b"c", *([None] if has_nulls else [])]
    headers = [(), (("h", b"1"), ("n", None))] if has_headers else [()]
    made = []
    for number in range(rows):
        topic = "table" if chance.random() < 0.05 else "in"
        own = [value and b'"%s"' % value for value in values] if topic == "table" else values
        timestamp = max(0, number * 3 + chance.randrange(-150, 30))
        made.append(
            (
                topic,
                chance.randrange(PARTITIONS),
                chance.choice(keys),
                chance.choice(own),
                timestamp,
                chance.choice(headers),
            )
        )
    return made


@pytest.fixture
def as_columns(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Whether records are processed as columns from now on; each time begins without live tasks."""

    def choose(is_wanted: bool) -> None:
        monkeypatch.setattr(group_run, "_kept", {})
        monkeypatch.setattr(task_rows, "SHORT_RUN", 1 if is_wanted else 10**9)

    return choose


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda topology: topology.__name__)
@pytest.mark.parametrize("kind", ["nulls", "no nulls", "headers"])
def test_columns_give_the_same_as_single_records(
    topology: Lines, kind: str, as_columns: Callable[[bool], None]
) -> None:
    ways = []
    for is_wanted in (True, False):
        as_columns(is_wanted)
        worker = Worker(built(topology))
        batches = [
            random_records(seed, 200, has_nulls=kind != "no nulls", has_headers=kind == "headers") for seed in range(3)
        ]
        ways.append(([worker.run(records) for records in batches], worker.state()))
    assert ways[0] == ways[1]
    assert any(ways[0][0])


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda topology: topology.__name__)
def test_these_topologies_are_processed_as_columns(
    topology: Lines, as_columns: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert taken_as_columns(built(topology), as_columns, monkeypatch)


def taken_as_columns(
    topology: Topology, as_columns: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> set[str]:
    """The inputs whose records were processed as columns."""
    taken: set[str] = set()
    process = Task.process_columns

    def watched(task: Task, name: str, *given: Any, **options: Any) -> Any:
        found = process(task, name, *given, **options)
        if found is not None:
            taken.add(name)
        return found

    monkeypatch.setattr(Task, "process_columns", watched)
    as_columns(True)
    Worker(topology, **LOGGED).run([record for record in random_records(1, 200) if record[0] == "in"])
    return taken


def failing(lines: Lines, records: list[tuple[Any, ...]], **settings: Any) -> str:
    with pytest.raises((MoldauError, WorkerError)) as raised:
        Worker(built(lines), **settings).run(records)
    return str(raised.value)


def with_one(value: bytes, *, key: bytes = b"k1") -> list[tuple[Any, ...]]:
    records = [record for record in random_records(5, 90, has_nulls=False) if record[0] == "in"]
    return [*records[:40], ("in", 1, key, value, 1_000, ()), *records[40:]]


def divides(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    lines.map_values(lambda value: str(1 // (ord(value[0]) - ord("z")))).to("out", TO_TEXT)


def numbers_as_text(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    lines.map_values(lambda value: 7 if value == "z" else value).to("out", TO_TEXT)


def no_pairs(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    def paired(key: str, value: str) -> Any:
        return 5 if value == "z" else (key, value)

    lines.map(paired).to("out", TO_TEXT)


def keys_that_cannot_be_stored(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    keyed = lines.select_key(lambda key, value: 1.5 if value == "z" else 7)
    keyed.group_by_key(Grouped.with_(NUMBER, TEXT)).count(Materialized.with_(NUMBER, NUMBER)).to_stream().to(
        "out", Produced.with_(NUMBER, NUMBER)
    )


@pytest.mark.parametrize("lines", [divides, numbers_as_text, no_pairs, keys_that_cannot_be_stored])
def test_a_failure_is_told_in_the_same_words(lines: Lines, as_columns: Callable[[bool], None]) -> None:
    as_columns(True)
    told = failing(lines, with_one(b"z"))
    as_columns(False)
    assert told == failing(lines, with_one(b"z"))
    assert "partition 1, offset" in told


@pytest.mark.parametrize("part", ["key", "value"])
@pytest.mark.parametrize("lines", [maps, counts])
def test_bytes_that_are_no_text_stop_the_pipeline_or_are_skipped(
    lines: Lines, part: str, as_columns: Callable[[bool], None]
) -> None:
    records = with_one(b"\xff") if part == "value" else with_one(b"a", key=b"\xff")
    ways = []
    for is_wanted in (True, False):
        as_columns(is_wanted)
        skipping = Worker(built(lines), **{"deserialization.exception.handler": "log-and-continue"})
        ways.append((failing(lines, records), skipping.run(records)))
    assert ways[0] == ways[1]
    assert "cannot be read" in ways[0][0]


def test_a_processing_handler_gets_records_one_by_one(as_columns: Callable[[bool], None]) -> None:
    as_columns(True)
    worker = Worker(built(divides), **{"processing.exception.handler": "log-and-continue"})
    ((_, rows),) = worker.run(with_one(b"z")).items()
    assert len(rows) == len(with_one(b"z")) - 1


def words(builder: StreamsBuilder, lines: KStream[str, str]) -> None:
    split = lines.flat_map_values(lambda value: [value, None, f"{value}x"])
    grouped = split.group_by(lambda key, value: None if value == "ax" else value, Grouped.with_(TEXT, TEXT))
    grouped.count().to_stream().to("out", Produced.with_(TEXT, NUMBER))


@pytest.mark.parametrize("is_sorted", [True, False])
def test_records_for_a_native_count_leave_python_counted(is_sorted: bool, as_columns: Callable[[bool], None]) -> None:
    (section,) = cut_topology(built(words), TaskSettings()).sections
    assert section.before is not None
    plan = Plan.of(section.before, {"in": PARTITIONS}, 1)
    work = work_of(plan, plan.stages[0], TaskSettings())
    records = random_records(3, 200)
    if is_sorted:
        records.sort(key=lambda record: int(record[4]))
    ways = []
    for counts in (True, False):
        as_columns(counts)
        host = StatelessHost(Parcel.of(replace(work, feeds_aggregate=True, feeds_count=counts), shares_folders=True))
        worker = Worker(section.before)
        rows = pa.Table.from_batches(host(worker.from_topics(plan.stages[0], records))).to_pylist()
        ways.append(rows)
    assert totals(ways[0]) == totals([{**row, "copies": 1} for row in ways[1]])
    assert len(ways[0]) == len(totals(ways[0])) * PARTITIONS


def totals(rows: list[dict[str, Any]]) -> dict[bytes, tuple[int, int]]:
    """How many records there are of each key, and the largest timestamp."""
    found: dict[bytes, tuple[int, int]] = {}
    for row in rows:
        if row["key"] is not None and row["value"] is not None:
            copies, latest = found.get(row["key"], (0, 0))
            found[row["key"]] = copies + row["copies"], max(latest, row["timestamp"])
    return found
