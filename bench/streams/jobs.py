"""The jobs that every stream processor gets, and how to tell that one is done.

An input record has a key of 10,000 (`key-0000001234`) and about 100 bytes of words. A job reads `input`, the join also
`table`, and writes `output`; counts are 8 bytes, big-endian, wherever the processor lets us choose.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["JOBS", "Job"]

WORDS_PER_RECORD = 12
"""More or less; only `word-count` cares, and it is done when its outputs say so."""


@dataclass(frozen=True, slots=True)
class Job:
    """`is_one_to_one`: as many outputs as inputs, so the end is known by counting; else by the counts themselves."""

    name: str
    title: str
    is_one_to_one: bool
    counts: bool = False
    exactly_once: bool = False
    caching: bool = False
    has_table: bool = False
    record_bytes: int = 100
    competitors: tuple[str, ...] = ("kafka-streams", "moldau")


EVERYBODY = ("kafka-streams", "quix", "faust", "moldau")

JOBS = {
    job.name: job
    for job in (
        Job("copy", "copy", True, competitors=("kafka-streams", "quix", "faust", "pyspark", "moldau")),
        Job("map-filter", "map and filter, native", True, competitors=("pyspark", "moldau")),
        Job("count-cached", "count by key, caching", False, counts=True, caching=True,
            competitors=("kafka-streams", "pyspark", "moldau")),
        Job("count", "count by key, every change", True, counts=True,
            competitors=("kafka-streams", "quix", "faust", "pyspark", "moldau")),
        Job("mapped-count", "a Python function, then count by key, caching", False, counts=True, caching=True,
            competitors=("moldau",)),
        Job("copy-eos", "copy, exactly once", True, exactly_once=True),
        Job("count-eos", "count by key, exactly once", False, counts=True, exactly_once=True, caching=True),
        Job("word-count", "word count", False, counts=True, caching=True, competitors=EVERYBODY),
        Job("windowed-count", "windowed count, every change", True, counts=True, competitors=EVERYBODY),
        Job("copy-realtime", "copy, real-time", True, competitors=("moldau",)),
        Job("count-realtime", "count by key, every change, real-time", True, counts=True, competitors=("moldau",)),
        Job("join", "stream-table join", True, has_table=True, competitors=EVERYBODY),
    )
}  # fmt: skip
