"""Small topologies of strings, and a way to run them record by record. Start at `Run`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.functions import PythonFunction
from moldau.pipeline.ir.rewrites.foreign_key import lower_foreign_key_joins
from moldau.pipeline.ir.topology import Topology
from moldau.serdes.plain import StringSerde

STRING = StringSerde()

Told = tuple[Any, Any, int]
"""Key, value and timestamp of an output."""


def stored(name: str, *, is_queryable: bool = False, is_caching: bool = False) -> ir.Materialization:
    """A store of strings."""
    return ir.Materialization(
        store=name, key_serde=STRING, value_serde=STRING, is_queryable=is_queryable, is_caching=is_caching
    )


def stream(topic: str) -> ir.StreamSource:
    """A stream of strings; the node is called as its topic."""
    return ir.StreamSource(name=topic, topics=(topic,), key_serde=STRING, value_serde=STRING)


def table(topic: str, *, is_queryable: bool = False) -> ir.TableSource:
    """A table of strings; the node is called as its topic."""
    return ir.TableSource(
        name=topic,
        topics=(topic,),
        key_serde=STRING,
        value_serde=STRING,
        table=stored(f"{topic}-store", is_queryable=is_queryable),
    )


def global_table(topic: str) -> ir.GlobalTableSource:
    """A global table of strings."""
    return ir.GlobalTableSource(
        name=topic, topics=(topic,), key_serde=STRING, value_serde=STRING, table=stored(f"{topic}-store")
    )


def function(call: Callable[..., Any]) -> PythonFunction:
    """A user's function."""
    return PythonFunction(call)


def both(left: Any, right: Any) -> str:
    """A joiner that shows what it was given; a dash is an absent side."""
    return f"{left or '-'}{right or '-'}"


def sink(source: ir.Node, topic: str = "out") -> ir.Sink:
    """A sink for strings."""
    return ir.Sink(name=f"sink-{topic}", input=source, topic=topic, key_serde=STRING, value_serde=STRING)


def table_sink(source: ir.Node, topic: str = "out") -> tuple[ir.Node, ...]:
    """The changes of a table as a stream into a sink."""
    changes = ir.ToStream(name=f"to-stream-{topic}", input=source)
    return changes, sink(changes, topic)


class Run:
    """A topology at work in memory."""

    def __init__(
        self,
        *nodes: ir.Node,
        partitions: int = 1,
        is_caching: bool = False,
        wall_clock_ms: int = 0,
        **others: Any,
    ) -> None:
        settings = TaskSettings(cache_max_bytes=1_000_000 if is_caching else 0, **others)
        topology = Topology(lower_foreign_key_joins(nodes))
        self.run = InMemoryRun(topology, settings, partitions=partitions, wall_clock_ms=wall_clock_ms)

    def pipe(self, topic: str, key: str | None, value: str | None, timestamp: int, **others: Any) -> list[Told]:
        """Process a record and return what it made the topology tell."""
        self.run.pipe(topic, _bytes(key), _bytes(value), timestamp, **others)
        return self.told()

    def feed(self, records: Iterable[tuple[str, str | None, str | None, int]], cuts: frozenset[int]) -> list[Told]:
        """Process records, going on from the backends with new tasks before those at `cuts`."""
        told = []
        for number, record in enumerate(records):
            if number in cuts:
                self.run.rebuild()
            told += self.pipe(*record)
        return told

    def told(self, topic: str = "out") -> list[Told]:
        """What was written to a topic since the last time anybody asked."""
        return [(_string(row.key), _string(row.value), row.timestamp) for row in self.run.drain() if row.topic == topic]

    def dropped(self) -> dict[tuple[str, str], int]:
        """How many records were left out, by node and reason."""
        return dict(self.run.dropped_records)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _string(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
