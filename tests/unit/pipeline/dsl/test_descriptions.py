"""What a topology says of itself is, letter by letter, what Kafka Streams 4.3.1 says of the same one.

The files under `descriptions/` were written by `Descriptions.java` there.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.pipeline.dsl.descriptions.topologies import TOPOLOGIES

from moldau.pipeline.ir.describing import kafka_description
from moldau.streams import StreamsBuilder

EXPECTED = Path(__file__).parent / "descriptions"


@pytest.mark.parametrize("name", sorted(path.stem for path in EXPECTED.glob("*.txt")))
def test_a_topology_describes_itself_as_kafka_streams_does(name: str) -> None:
    builder = StreamsBuilder()
    TOPOLOGIES[name](builder)
    assert kafka_description(builder.build().nodes) == (EXPECTED / f"{name}.txt").read_text()


def test_every_topology_has_its_description() -> None:
    assert set(TOPOLOGIES) == {path.stem for path in EXPECTED.glob("*.txt")}
