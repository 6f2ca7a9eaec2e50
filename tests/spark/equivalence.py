"""The same topologies and inputs in memory and on Spark, from a seed.

Cases of all families become one topology, because starting a query costs seconds whatever its size. Inputs are put
in the order in which one batch would take them, and cut into batches at random; once the query is stopped and goes on
from its checkpoint. Start at `drawn`, then `in_memory`, `on_spark` and `disagreements`.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle.streams.builder import Built, build
from tests.oracle.streams.combining import combined, in_taken_order
from tests.oracle.streams.families import FAMILIES, draw_case
from tests.oracle.streams.running import dumped, pipe, settings_of, with_texts

from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.partitioning import partition_hash
from moldau.pipeline.cores.records import OutputRecord
from moldau.pipeline.cores.task import Task, is_stateless
from moldau.pipeline.spark.spark_run import SparkRun
from moldau.streams import TopologyError
from moldau.streams.test_driver import Run

__all__ = ["GROUPS", "KnownTasks", "Outcome", "disagreements", "drawn", "in_memory", "on_spark"]

Case = dict[str, Any]
WITH_SETTINGS = ("caching", "failing", "optimized")
# What is written to a topic comes back through the broker, and there is none here.
WITHOUT_BROKER = tuple(name for name in FAMILIES if name not in (*WITH_SETTINGS, "read-back"))
GROUPS: dict[str, Sequence[str]] = {
    "every operator": WITHOUT_BROKER,
    "caching": ("caching",) * 6,
    "failing": ("failing",) * 6,
}
"""Cases that share their settings, and so may share a topology."""

BATCHES = 3
Shown = tuple[bytes | None, int, tuple[tuple[str, bytes | None], ...]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out, and what stores hold in the end."""

    outputs: Sequence[OutputRecord]
    stores: Mapping[str, list[Any]]


def drawn(group: str, seed: int, *, partitions: int = 2) -> Case:
    """One case made of a case of each family; a family that is there several times has as many seeds."""
    families = GROUPS[group]
    cases = [draw_case(family, seed * len(families) + number) for number, family in enumerate(families)]
    cases = [case for case in cases if _may_run(case)]
    for case in cases:
        case["inputs"] = [event for event in case["inputs"] if "advance" not in event]
    hashed = partition_hash()
    case = in_taken_order(
        combined(cases, f"{group}/{seed}"),
        lambda event: 0 if event["key"] is None else hashed(event["key"].encode(), partitions),
    )
    case["config"] = next((each["config"] for each in cases if "config" in each), {})
    case["partitions"] = partitions
    return case


def _may_run(case: Case) -> bool:
    """Whether a case needs no broker, and is none of the few that are refused."""
    if any(operator.get("topic", "").startswith("back") for operator in case["ops"]):
        return False
    try:
        build(case)
    except TopologyError:
        return False
    return True


class KnownTasks(InMemoryRun):
    """Also tells which task wrote a record, in place of the partition it goes to; nothing where there is no order."""

    def _carry(self, task: Task) -> None:
        first = len(self._outputs)
        super()._carry(task)
        topics = [topic for node in task.subtopology.inputs for topic in getattr(node, "topics", (node.name,))]
        takes_as_it_comes = is_stateless(task.subtopology) and len(topics) > 1
        writer = None if takes_as_it_comes else task.context.partition
        self._outputs[first:] = [each._replace(partition=writer) for each in self._outputs[first:]]


def in_memory(case: Case) -> Outcome:
    """Every record by itself, as the test driver does it."""

    def opened(built: Built) -> Run:
        return KnownTasks(with_texts(built.topology), settings_of(case), partitions=case["partitions"])

    return _outcome(case, opened, lambda run: None)


def on_spark(case: Case) -> Outcome:
    """A few batches, and a restart of the query before the last."""

    def opened(built: Built) -> Run:
        return SparkRun(with_texts(built.topology), settings_of(case), partitions=case["partitions"])

    def restart(run: Run) -> None:
        assert isinstance(run, SparkRun)
        run.restart()

    return _outcome(case, opened, restart)


def _outcome(case: Case, opened: Callable[[Built], Run], restart: Callable[[Run], None]) -> Outcome:
    built = build(case)
    running = opened(built)
    cuts = sorted(random.Random(case["id"]).sample(range(len(case["inputs"])), BATCHES - 1))
    outputs: list[OutputRecord] = []
    try:
        for batch, (first, last) in enumerate(zip([0, *cuts], [*cuts, len(case["inputs"])], strict=True)):
            if batch == BATCHES - 1:
                restart(running)
            for event in case["inputs"][first:last]:
                pipe(running, event)
            outputs.extend(running.drain())
            running.advance_wall_clock((batch + 1) * 100_000)
        outputs.extend(running.drain())
        shown = [output for output in outputs if output.topic in built.sink_topics]
        return Outcome(shown, dumped(running, built.stores))
    finally:
        running.close()


# --- comparing -------------------------------------------------------------------------------------------------


def disagreements(memory: Outcome, spark: Outcome) -> list[str]:
    """What differs: records of a topic and key in another order than tasks may have written them, or stores.

    Records of one key come from several tasks where a key was changed without repartitioning; between tasks there is
    no order. A task without state takes several inputs as they come.
    """
    found = []
    expected, actual = _by_place(memory.outputs), _by_place(spark.outputs)
    for place in sorted({*expected, *actual}, key=str):
        by_task: dict[int | None, list[Shown]] = defaultdict(list)
        for output in expected[place]:
            by_task[output.partition].append(_shown(output))
        given = [_shown(output) for output in actual[place]]
        if None in by_task:
            given, by_task[None] = sorted(given, key=str), sorted(by_task[None], key=str)
        if not _is_interleaving(given, list(by_task.values())):
            found.append(f"{place}\n  in memory, by task: {dict(by_task)}\n  on Spark: {given}")
    for store in sorted({*memory.stores, *spark.stores}):
        if sorted(memory.stores.get(store, ())) != sorted(spark.stores.get(store, ())):
            found.append(
                f"store {store}\n  in memory: {memory.stores.get(store)}\n  on Spark: {spark.stores.get(store)}"
            )
    return found


def _by_place(outputs: Sequence[OutputRecord]) -> dict[tuple[str, bytes | None], list[OutputRecord]]:
    places: dict[tuple[str, bytes | None], list[OutputRecord]] = defaultdict(list)
    for output in outputs:
        places[output.topic, output.key].append(output)
    return places


def _shown(output: OutputRecord) -> Shown:
    return output.value, output.timestamp, tuple(output.headers)


def _is_interleaving(whole: list[Shown], parts: list[list[Shown]]) -> bool:
    """Whether the whole can be taken apart into the parts, each in its order."""
    if len(whole) != sum(map(len, parts)):
        return False
    reached = {(0,) * len(parts)}
    for one in whole:
        reached = {
            (*at[:number], at[number] + 1, *at[number + 1 :])
            for at in reached
            for number, part in enumerate(parts)
            if at[number] < len(part) and part[at[number]] == one
        }
    return bool(reached)
