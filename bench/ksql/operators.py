"""CPU time that the operators take for a record, in one process without Spark and brokers: SQL beside the Streams DSL.

Both are the tasks that Spark's Python workers host, fed with the same records, every change emitted. CPU time does not
depend on what else a machine does, unlike all other parts. Start at `measured`.
"""

from __future__ import annotations

import json
import time
from typing import Any

from bench.ksql.apps.dsl_app import build
from bench.ksql.jobs import Job
from moldau.formats.registry.topic_schemas import TopicSchemas
from moldau.pipeline.cores.handlers import log_and_continue
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.stores.backends import MemoryBackend
from moldau.pipeline.cores.task import Task
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.ksql.execution.engine import Engine
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.ksql.trial.registry import MemoryRegistry
from moldau.pipeline.ksql.trial.topics import MemoryTopics

__all__ = ["measured"]

BATCH, ROUNDS = 2_000, 3
SOURCE, OUTPUT = "orders", "results"


def measured(job: Job, *, records: int, keys: int) -> dict[str, float]:
    """Microseconds of CPU for a record of the source, the best of some rounds."""
    tables = [f"table{number}" for number in range(job.tables)]
    topologies = {
        "SQL µs": _sql_topology(job, tables),
        "Streams DSL µs": build(job.name, SOURCE, OUTPUT, tables).build(),
    }
    orders = [(SOURCE, 0, at, 1_000 + at, (), _key(at % keys), _order(at)) for at in range(records)]
    rows = {table: [(table, 0, at, 0, (), _key(at), _table_row(at)) for at in range(keys)] for table in tables}
    cache_bytes = 10_000_000 if job.cached else 0
    return {
        way: min(_cpu_s(topology, orders, rows, cache_bytes) for _ in range(ROUNDS)) / records * 1e6
        for way, topology in topologies.items()
    }


def _sql_topology(job: Job, tables: list[str]) -> Topology:
    topics = MemoryTopics(dict.fromkeys([SOURCE, OUTPUT, *tables], 4))
    engine = Engine(topics, TopicSchemas(MemoryRegistry()), {})
    started = [engine.execute(one).started for one in parse(job.statements(SOURCE, OUTPUT, tables))]
    query = started[-1]
    assert query is not None
    return query.topology


def _key(number: int) -> bytes:
    return b"key-%08d" % number


def _order(number: int) -> bytes:
    note = "twenty bytes of note"
    return json.dumps(
        {"ITEM": f"item-{number % 50}", "PRICE": number % 1000, "QUANTITY": number, "NOTE": note}
    ).encode()


def _table_row(number: int) -> bytes:
    return json.dumps({"NAME": f"name-{number}", "LEVEL": number % 7}).encode()


def _cpu_s(topology: Topology, orders: list[Any], rows: dict[str, list[Any]], cache_bytes: int) -> float:
    """The CPU time of all tasks for the orders; the tables are there before."""
    settings = TaskSettings(cache_max_bytes=cache_bytes, deserialization_handler=log_and_continue)
    spent = 0.0
    carried: dict[str, list[Any]] = {}
    for part in topology.subtopologies:
        backends: dict[str, MemoryBackend] = {}
        task = Task(
            part,
            partition=0,
            partition_counts={},
            backends=lambda name, known=backends: known.setdefault(name, MemoryBackend()),  # type: ignore[misc]
            settings=settings,
            wall_clock_ms=0,
        )
        topics = {one.name: one.topics[0] for one in part.inputs if isinstance(one, ir.Source) and one.topics}
        for name in sorted(topics, key=lambda name: topics[name] == SOURCE):
            found = _fed(task, name, orders if topics[name] == SOURCE else rows[topics[name]], carried)
            spent += found if topics[name] == SOURCE else 0.0
        for name in [one.name for one in part.inputs if one.name not in topics]:
            spent += _fed(task, name, carried.pop(name, []), carried)
    return spent


def _fed(task: Task, name: str, records: list[Any], carried: dict[str, list[Any]]) -> float:
    """The CPU time of a task for these records; what it repartitions is added to `carried`."""
    began = time.process_time()
    for first in range(0, len(records), BATCH):
        task.process_batch(name, records[first : first + BATCH])
        task.commit()
        task.flush()
        for output, topic, key, value, timestamp, headers, *_ in task.drain():
            if topic != OUTPUT:
                carried.setdefault(output, []).append((topic, 0, 0, timestamp, headers, key, value))
    return time.process_time() - began
