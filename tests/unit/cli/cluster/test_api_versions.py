"""The lines of kafka-broker-api-versions."""

from __future__ import annotations

from moldau.cli.cluster.api_versions import api_lines
from moldau.client.admin import Node


def test_lines_name_ranges_single_versions_unsupported_and_unknown_apis() -> None:
    lines = list(api_lines(Node(0, "host", 9092), {0: (0, 99), 47: (0, 0), 999: (0, 1)}))
    assert lines[0] == "host:9092 (id: 0 rack: null isFenced: false) -> ("
    assert lines[1] == "\tProduce(0): 0 to 99 [usable: 13],"
    assert "\tOffsetDelete(47): 0 [usable: 0]," in lines
    assert "\tFetch(1): UNSUPPORTED," in lines
    assert lines[-2:] == ["\tUNKNOWN(999): 0 to 1", ")"]


def test_what_brokers_ask_each_other_is_not_missed() -> None:
    assert not any("Envelope" in line for line in api_lines(Node(0, "host", 9092), {0: (0, 9)}))
