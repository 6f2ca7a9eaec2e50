"""What moldau makes of a case, with restarts wherever the case's seed says. Start at `run`."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

from tests.oracle.streams.builder import Built, build
from tests.oracle.streams.comparison import Output, Result
from tests.oracle.streams.functions import digest, text

from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.records import OutputRecord, ValueAndTimestamp
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.stores import join_buffer, subscriptions, window_rows
from moldau.pipeline.cores.stores.write_back import WriteBack
from moldau.streams import StringSerde, Topology
from moldau.streams.test_driver import Run

__all__ = ["dumped", "pipe", "run", "settings_of", "with_texts", "written"]

CONFIG = {"application.id": "oracle", "statestore.cache.max.bytes": "0"}
RESTART_CHANCE = 0.15


def run(case: Mapping[str, Any]) -> Result:
    """Feed a case to tasks in memory; now and then they are made anew from their state, as between two batches."""
    with _small_limits() if digest(case["id"]) % 2 else nullcontext():
        return _run(case)


@contextmanager
def _small_limits() -> Iterator[None]:
    """Sizes at which stores change how they keep things, so small that a few records reach them."""
    with (
        patch.object(subscriptions, "CROWDED", 1),
        patch.object(join_buffer, "KEYS_PER_CHUNK", 2),
        patch.object(join_buffer, "SHORTEST_SEGMENT_MS", 2),
        patch.object(join_buffer, "CHUNKS_REMOVED_PER_FLUSH", 1),
        patch.object(window_rows, "DELETIONS_PER_FLUSH", 1),
        patch.object(WriteBack.__init__, "__defaults__", (1,)),
    ):
        yield


def _run(case: Mapping[str, Any]) -> Result:
    try:
        built = build(case)
    except Exception as error:
        return Result("", (), {}, f"{type(error).__name__}: {error}")
    description = built.topology.describe()
    outputs: list[Output] = []
    try:
        stores = _feed(case, built, outputs)
    except Exception as error:
        return Result(description, tuple(outputs), {}, f"{type(error).__name__}: {error}")
    return Result(description, tuple(outputs), stores)


def _feed(case: Mapping[str, Any], built: Built, outputs: list[Output]) -> dict[str, list[Any]]:
    topology = with_texts(built.topology)
    now_ms = case.get("wall", 0)
    running = InMemoryRun(topology, settings_of(case), partitions=case.get("partitions", 1), wall_clock_ms=now_ms)
    cuts = random.Random(case["id"])
    for step, event in enumerate(case["inputs"]):
        try:
            if "advance" in event:
                now_ms += event["advance"]
                running.advance_wall_clock(now_ms)
            else:
                pipe(running, event)
        finally:
            outputs.extend(written(step, running.drain(), built.sink_topics))
        if cuts.random() < RESTART_CHANCE:
            running.rebuild()
    stores = {} if case.get("without_stores") else dumped(running, built.stores)
    running.close()
    return stores


def with_texts(topology: Topology) -> Topology:
    """Keys and values are texts where a case names no serde."""
    return topology.with_default_serdes(key=StringSerde(), value=StringSerde())


def settings_of(case: Mapping[str, Any]) -> TaskSettings:
    return TaskSettings.of({**CONFIG, **case.get("config", {})})


def pipe(running: Run, event: Mapping[str, Any]) -> None:
    """Give a case's input to whatever runs it."""
    headers = tuple((name, _bytes(value)) for name, value in event.get("headers", ()))
    key, value = _bytes(event["key"]), _bytes(event["value"])
    running.pipe(event["topic"], key, value, event["timestamp"], headers=headers, partition=event.get("partition"))


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def written(step: int, records: Iterable[OutputRecord], topics: tuple[str, ...]) -> list[Output]:
    """What came out, but for internal topics."""
    return [
        Output(step, record.topic, record.key, record.value, record.timestamp, tuple(record.headers))
        for record in records
        if record.topic in topics
    ]


def dumped(running: Run, names: Iterable[str]) -> dict[str, list[Any]]:
    """Every entry of the stores of these names, of all partitions."""
    return {
        name: [_entry(key, value) for store in running.stores(name) for key, value in store.all()]  # type: ignore[attr-defined]
        for name in names
    }


def _entry(key: Any, value: Any) -> list[Any]:
    if isinstance(value, ValueAndTimestamp):
        return [text(key), text(value.value), value.timestamp]
    return [text(key), text(value)]
