"""Random topologies of expressions and Python functions, in memory and on Spark, from a seed.

Each consists of a few pipelines with topics of their own: steps, an aggregation perhaps, more steps, sinks here and
there. Caching is on, so in memory changes leave at the end of a batch too. Start at `drawn`, then `in_memory` and
`on_spark`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.spark.equivalence import KnownTasks, Outcome

from moldau.pipeline.cores.partitioning import partition_hash
from moldau.pipeline.cores.records import OutputRecord
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.spark.spark_run import SparkRun
from moldau.streams import (
    Consumed,
    Grouped,
    KStream,
    LongSerde,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    Topology,
    aggregate,
    functions,
    key,
    value,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Case", "drawn", "in_memory", "on_spark"]

TEXT, LONG = StringSerde(), LongSerde()
TEXTS, LONGS = Grouped.with_(TEXT, TEXT), Grouped.with_(TEXT, LONG)
PARTITIONS, PIPELINES, INPUTS, BATCHES = 2, 5, 60, 3
SETTINGS = TaskSettings()
Step = Callable[[KStream], KStream]


def long_enough(key: str, text: str | None) -> bool:
    return text is not None and len(text) < 12


def reversed_text(text: str | None) -> str | None:
    return None if text == "c" else text and text[::-1]


def twice(text: str | None) -> list[str | None]:
    return [] if text is None else [text, text + text[-1:]]


def first_letter(key: str, text: str | None) -> str | None:
    return text and text[0]


def length(text: str | None) -> int | None:
    return None if text is None else len(text)


def far_number(text: str | None) -> int | None:
    """Numbers of both signs, near enough to the ends of 64 bits to show a wrong type, too small to overflow a sum."""
    return None if text is None else (-1) ** len(text) * (1 << 54) + len(text)


def ignore(key: str, text: str | None) -> None:
    pass


STEPS: Sequence[Step] = (
    lambda stream: stream.filter(value != "b"),
    lambda stream: stream.map_values(functions.upper(value)),
    lambda stream: stream.map_values_with_key(key + value),
    lambda stream: stream.filter(long_enough),
    lambda stream: stream.map_values(reversed_text),
    lambda stream: stream.flat_map_values(twice),
    lambda stream: stream.peek(ignore),
)

AGGREGATIONS: Sequence[Callable[[KStream, Materialized], Any]] = (
    lambda stream, stored: stream.group_by_key(TEXTS).count(stored),
    lambda stream, stored: stream.group_by(value, TEXTS).count(stored),
    lambda stream, stored: stream.group_by(first_letter, TEXTS).count(stored),
    lambda stream, stored: stream.map_values(length).group_by_key(LONGS).reduce(aggregate + value, stored),
    lambda stream, stored: stream.map_values(length).group_by_key(LONGS).reduce(lambda one, other: other - one, stored),
    lambda stream, stored: (
        stream.map_values(far_number).group_by_key(LONGS).reduce(functions.least(aggregate, value), stored)
    ),
    lambda stream, stored: (
        stream.map_values(far_number).group_by_key(LONGS).reduce(functions.greatest(aggregate, value), stored)
    ),
)

CHANGES: Sequence[Step] = (
    lambda stream: stream.filter(value > 1),
    lambda stream: stream.map_values(value * 10),
    lambda stream: stream.filter(lambda word, count: count is None or count % 3 != 0),
    lambda stream: stream.map_values(lambda count: count and count + 1),
    lambda stream: stream.select_key(key + "!"),
)


@dataclass(frozen=True)
class Case:
    """A topology and the records that it gets, in batches."""

    topology: Topology
    batches: Sequence[Sequence[tuple[str, bytes, bytes | None, int]]]


def drawn(seed: int) -> Case:
    chance = random.Random(seed)
    builder = StreamsBuilder()
    for number in range(PIPELINES):
        _pipeline(builder, chance, number)
    inputs = []
    for at in range(INPUTS):
        text = chance.choice(["a", "b", "c", "ab", "bca", None])
        topic = f"in-{chance.randrange(PIPELINES)}"
        inputs.append((topic, chance.choice("klmn").encode(), text and text.encode(), 1000 + at))
    size = INPUTS // BATCHES
    return Case(builder.build(), [inputs[first : first + size] for first in range(0, INPUTS, size)])


def _pipeline(builder: StreamsBuilder, chance: random.Random, number: int) -> None:
    stream = builder.stream(f"in-{number}", Consumed.with_(TEXT, TEXT))
    for step in chance.choices(STEPS, k=chance.randrange(3)):
        stream = step(stream)
        if chance.random() < 0.3:
            stream.to(f"aside-{number}", Produced.with_(TEXT, TEXT))
    if chance.random() < 0.2:
        stream.to(f"out-{number}", Produced.with_(TEXT, TEXT))
        return
    stored = Materialized.as_(f"store-{number}") if chance.random() < 0.5 else Materialized.with_(TEXT, LONG)
    table = chance.choice(AGGREGATIONS)(stream, stored.with_key_serde(TEXT).with_value_serde(LONG))
    changes = table.to_stream()
    for step in chance.choices(CHANGES, k=chance.randrange(3)):
        changes = step(changes)
        if chance.random() < 0.3:
            changes.to(f"between-{number}", Produced.with_(TEXT, LONG))
    changes.to(f"out-{number}", Produced.with_(TEXT, LONG))


class _CommittingOncePerBatch(KnownTasks):
    """Takes the records of a batch one by one, and forwards what caching held back when results are asked for."""

    def _work(self) -> None:
        while self._queue:
            task, node, record = self._queue.popleft()
            task.process(node, record)
            self._carry(task)

    def drain(self) -> list[OutputRecord]:
        for task in self._tasks.values():  # In the order of sub-topologies, so that changes reach those behind.
            task.commit()
            self._carry(task)
            self._work()
        return super().drain()


def in_memory(case: Case) -> Outcome:
    """What the tasks of the test driver give."""
    return _outcome(case, _CommittingOncePerBatch(case.topology, SETTINGS, partitions=PARTITIONS), lambda: None)


def on_spark(case: Case, spark: SparkSession) -> tuple[Outcome, SparkRun]:
    """What Spark gives, natively where it can, with a restart of the query before the last batch."""
    run = SparkRun(
        case.topology, SETTINGS, partitions=PARTITIONS, commits_each_record=False, is_native=True, spark=spark
    )
    try:
        return _outcome(case, run, run.restart), run
    finally:
        run.close()


def _outcome(case: Case, run: Any, restart: Callable[[], None]) -> Outcome:
    hashed = partition_hash()
    outputs: list[OutputRecord] = []
    for number, batch in enumerate(case.batches):
        if number == len(case.batches) - 1:
            restart()
        for topic, record_key, text, timestamp in batch:
            run.pipe(topic, record_key, text, timestamp, partition=hashed(record_key, PARTITIONS))
        outputs.extend(run.drain())
    topics = {sink.topic for sink in case.topology.sinks}
    return Outcome([output for output in outputs if output.topic in topics], {})
