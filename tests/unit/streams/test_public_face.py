"""The public names: all of them there, none of them dragging Spark in."""

from __future__ import annotations

import subprocess
import sys

import pytest

import moldau.streams


def test_every_public_name_can_be_had() -> None:
    for name in moldau.streams.__all__:
        assert getattr(moldau.streams, name) is not None


def test_names_that_are_loaded_on_demand_are_listed_with_the_others() -> None:
    assert {"KafkaStreams", "StreamsBuilder", "TopologyTestDriver"} <= set(dir(moldau.streams))


def test_an_unknown_name_is_unknown() -> None:
    with pytest.raises(AttributeError, match="no attribute 'KafkaDreams'"):
        _ = moldau.streams.KafkaDreams


def test_describing_and_testing_a_topology_import_no_spark() -> None:
    program = (
        "import sys; from moldau.streams import StreamsBuilder, TopologyTestDriver; "
        "b = StreamsBuilder(); b.stream('in').to('out'); "
        "TopologyTestDriver(b.build(), {'default.key.serde': 'string', 'default.value.serde': 'string'}).close(); "
        "sys.exit('pyspark' in sys.modules or 'py4j' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
