"""Real-time pipelines share the tasks that a driver can run at once, and what does not fit is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.errors import StreamsError


def engine(slots: int, master: str = "local[2]") -> Engine:
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=slots))
    return Engine({"spark.master": master}, spark=spark)


def test_slots_are_shared_out_and_given_back() -> None:
    shared = engine(10)
    shared.reserve_slots("one", 6)
    with pytest.raises(StreamsError, match=r"needs 6 Spark task slots for other, .* 4 of 10 are free"):
        shared.reserve_slots("other", 6)
    shared.release_slots("one")
    shared.reserve_slots("other", 6)


def test_a_pipeline_that_starts_again_has_its_own_slots() -> None:
    shared = engine(6)
    shared.reserve_slots("one", 6)
    shared.reserve_slots("one", 6)


def test_the_executors_of_a_cluster_are_not_counted() -> None:
    engine(2, "spark://127.0.0.1:7077").reserve_slots("one", 6)
