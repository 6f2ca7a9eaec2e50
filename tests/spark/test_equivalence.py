"""Generated topologies and inputs give the same on Spark as in the test driver, for every operator.

One round; `scripts/streams-equivalence` runs as many as one likes.
"""

from __future__ import annotations

import pytest
from tests.spark.equivalence import GROUPS, disagreements, drawn, in_memory, on_spark

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("group", GROUPS)
def test_spark_and_the_test_driver_agree(group: str) -> None:
    case = drawn(group, 0)
    found = disagreements(in_memory(case), on_spark(case))
    assert not found, "\n".join(found)
