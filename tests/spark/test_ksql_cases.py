"""Conformance cases of SQL on real Spark, many united into one query: the results are those of the cases.

Each case keeps to itself: its topics, nodes and stores get its number. A batch holds, of every case, as many records as
Spark processes in the order in which the case gives them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.ksql_cases.case_records import MismatchError
from tests.ksql_cases.cases import FOLDER, Case, capabilities, load_cases
from tests.ksql_cases.runner import CaseRun
from tests.ksql_cases.world import CaseRecord

from moldau.pipeline.cores.handlers import log_and_continue
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.rewrites.rebuilding import rebuild, replace_fields
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.ksql.execution.engine import PersistentQuery
from moldau.pipeline.spark.sections import cut_topology
from moldau.pipeline.spark.spark_run import SparkRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the conformance cases are not beside the project"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

CASES_OF_A_ROW = 9
MOST_BATCHES = 4
CASES_AT_LEAST = 100
NATIVE_CASES = 40
SETTINGS = TaskSettings(cache_max_bytes=0, deserialization_handler=log_and_continue)
HARMLESS = {"ksql.streams.__emit.interval.ms.kstreams.windowed.aggregation__"}
"""Properties that ask for what is always so."""
NAMES = ("name", "topic", "store", "subscriptions", "subscription_topic", "response_topic", "outer_store")
Inputs = list[tuple[str, CaseRecord]]


def chosen_cases() -> list[Case]:
    """Some cases of every row, spread over the files."""
    found: dict[str, list[Case]] = {}
    for case in load_cases():
        if case.expected_error is None and case.content.get("inputs") and set(case.properties) <= HARMLESS:
            for row in capabilities(case):
                found.setdefault(row, []).append(case)
    chosen: dict[str, Case] = {}
    for row, cases in found.items():
        taken = 0
        for case in cases[:: max(1, len(cases) // (3 * CASES_OF_A_ROW))]:
            if taken < CASES_OF_A_ROW and case.full_name not in chosen and can_run(case):
                chosen[case.full_name] = case
                taken += 1
        assert taken, f"no case of the row {row} can run here"
    return list(chosen.values())


def can_run(case: Case) -> bool:
    """Whether a case is one query without a registry, whose order of records few batches can keep."""
    run = CaseRun(case)
    inputs = run.prepare()
    sources = run.engine.catalogue.sources.values()
    uses_registry = any(
        one.format.uses_registry for source in sources for one in (source.key_format, source.value_format)
    )
    if inputs is None or len(run.queries) != 1 or uses_registry:
        return False
    (query,) = run.queries.values()
    return len(list(batches(query, inputs))) <= MOST_BATCHES


def batches(query: PersistentQuery, inputs: Inputs) -> Iterator[Inputs]:
    """The records in pieces that Spark processes in their order: by time, and at one time by source."""
    lanes = {topic: lane for lane, source in enumerate(query.topology.sources) for topic in source.topics}
    clocks: dict[str, int] = {}
    batch: Inputs = []
    last = (0, 0)
    for topic, record in inputs:
        if topic not in lanes:
            continue
        clock = max(record.timestamp, clocks.get(topic, record.timestamp))
        if batch and (clock, lanes[topic]) < last:
            yield batch
            batch, clocks, clock = [], {}, record.timestamp
        clocks[topic], last = clock, (clock, lanes[topic])
        batch.append((topic, record))
    if batch:
        yield batch


def with_prefix(topology: Topology, prefix: str) -> list[ir.Node]:
    """The nodes of a topology under names of their own."""

    def rename(node: ir.Node) -> tuple[ir.Node, ...]:
        changes: dict[str, Any] = {}
        for field in fields(node):  # type: ignore[arg-type]
            value = getattr(node, field.name)
            if field.name == "topics":
                changes["topics"] = tuple(prefix + topic for topic in value)
            elif field.name in NAMES and isinstance(value, str):
                changes[field.name] = prefix + value
            elif isinstance(value, ir.Materialization):
                changes[field.name] = replace(value, store=prefix + value.store)
        return (replace_fields(node, **changes),)

    return list(rebuild(topology.nodes, rename))


class UnitedRun(SparkRun):
    """A run of many topologies: the order of records matters within each of them only."""

    def add(self, topic: str, record: CaseRecord) -> None:
        """Take a record for the next batch, which the caller has cut."""
        self._order.begin()
        self.pipe(topic, record.key, record.value, record.timestamp, headers=record.headers, partition=0)


def test_cases_of_every_row_give_the_same_on_spark(spark: SparkSession) -> None:
    cases = chosen_cases()
    assert len(cases) >= CASES_AT_LEAST
    runs = [CaseRun(case) for case in cases]
    nodes: list[ir.Node] = []
    rounds: list[list[tuple[str, CaseRecord]]] = [[] for _ in range(MOST_BATCHES)]
    for number, run in enumerate(runs):
        inputs = run.prepare() or []
        (query,) = run.queries.values()
        nodes += with_prefix(query.topology, f"c{number}-")
        for place, batch in enumerate(batches(query, inputs)):
            rounds[place] += [(f"c{number}-{topic}", record) for topic, record in batch]
    assert_equal_results(UnitedRun(Topology(nodes), SETTINGS, spark=spark), runs, rounds)


def assert_equal_results(united: UnitedRun, runs: list[CaseRun], rounds: list[Inputs]) -> None:
    """Run the records of all cases, batch by batch, and compare what comes out with what each case expects."""
    try:
        for batch in rounds:
            for topic, record in batch:
                united.add(topic, record)
            united.run_batch()
        outputs = united.drain()
    finally:
        united.close()
    for output in outputs:
        prefix, _, topic = output.topic.partition("-")
        run = runs[int(prefix[1:])]
        if topic in {query.sink_topic for query in run.queries.values()}:
            run.topics.append(topic, CaseRecord(output.key, output.value, output.timestamp, output.headers))
    assert {run.case.full_name: problem for run in runs if (problem := problem_of(run))} == {}


def native_cases() -> list[Case]:
    """Cases of one query that Spark computes without Python, spread over the files."""
    found = []
    for case in load_cases():
        if case.expected_error is None and case.content.get("inputs") and set(case.properties) <= HARMLESS:
            run = CaseRun(case)
            if run.prepare() is None or len(run.queries) != 1:
                continue
            (query,) = run.queries.values()
            if cut_topology(query.topology, SETTINGS).hosted is None:
                found.append(case)
    return found[:: max(1, len(found) // NATIVE_CASES)]


def test_native_cases_give_the_same(spark: SparkSession) -> None:
    cases = native_cases()
    assert len(cases) >= NATIVE_CASES
    runs = [CaseRun(case) for case in cases]
    nodes: list[ir.Node] = []
    records: Inputs = []
    for number, run in enumerate(runs):
        inputs = run.prepare() or []
        (query,) = run.queries.values()
        nodes += with_prefix(query.topology, f"c{number}-")
        records += [(f"c{number}-{topic}", one) for topic, one in inputs if topic in query.source_topics]
    united = UnitedRun(Topology(nodes), SETTINGS, spark=spark, is_native=True)
    assert united.compiled.is_native, united.compiled.native_refusal
    assert_equal_results(united, runs, [records])


def problem_of(run: CaseRun) -> str:
    """Why the results of a case are not those that it expects; empty if they are."""
    try:
        run.compare()
    except MismatchError as error:
        return str(error)
    return ""
