"""Random topologies that are partly native and partly Python give on Spark what they give in the test driver.

`scripts/streams-equivalence --group mixed` runs as many as one likes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.equivalence import disagreements
from tests.spark.mixed_topologies import drawn, in_memory, on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("seed", [0, 1])
def test_spark_and_the_test_driver_agree(spark: SparkSession, seed: int) -> None:
    case = drawn(seed)
    outcome, run = on_spark(case, spark)
    assert run.compiled.cut.sections
    assert run.compiled.cut.has_python
    found = disagreements(in_memory(case), outcome)
    assert not found, "\n".join(found)
