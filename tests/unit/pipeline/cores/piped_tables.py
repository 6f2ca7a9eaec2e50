"""Pipelines of strings from topic "in" to topic "out", written in the DSL and driven in memory. Start at `Pipe`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.dsl.builder import StreamsBuilder
from moldau.pipeline.dsl.kstream import KStream
from moldau.pipeline.dsl.ktable import KTable
from moldau.pipeline.ir.topology import Topology
from moldau.serdes.plain import JsonSerde, StringSerde

STRING, JSON = StringSerde(), JsonSerde()

Told = tuple[str | None, Any, int]
"""Key, value and timestamp of an output."""

Build = Callable[[KStream], KTable | KStream]


def written_key(key: Any) -> str:
    """A key as these pipelines write it: `key@start-end` where it is windowed."""
    return key if isinstance(key, str) else f"{key.key}@{key.window.start}-{key.window.end}"


class Pipe:
    """One pipeline at work; what `build` makes of the stream "in" is written to "out" as JSON."""

    def __init__(self, build: Build, *, is_caching: bool = False, partitions: int = 1, **settings: Any) -> None:
        builder = StreamsBuilder()
        made = build(builder.stream("in"))
        stream = made.to_stream() if isinstance(made, KTable) else made
        stream.select_key(lambda key, value: None if key is None else written_key(key)).map_values(
            lambda value: value, named="unchanged"
        ).to("out")
        self.topology: Topology = builder.build().with_default_serdes(key=STRING, value=JSON)
        settings = {"cache_max_bytes": 1_000_000 if is_caching else 0} | settings
        self.run = InMemoryRun(self.topology, TaskSettings(**settings), partitions=partitions)

    def __call__(self, key: str | None, value: Any, timestamp: int, **others: Any) -> list[Told]:
        """Process a record and return what it made the pipeline tell."""
        self.run.pipe(
            "in",
            None if key is None else key.encode(),
            None if value is None else JSON.serialize("in", value),
            timestamp,
            **others,
        )
        return self.told()

    def told(self) -> list[Told]:
        """What was written since the last time anybody asked."""
        return [
            (
                None if row.key is None else row.key.decode(),
                None if row.value is None else JSON.deserialize("out", row.value),
                row.timestamp,
            )
            for row in self.run.drain()
            if row.topic == "out"
        ]

    def dropped(self) -> dict[str, int]:
        """How many records were left out, by reason."""
        return {reason: count for (_, reason), count in self.run.dropped_records.items()}
