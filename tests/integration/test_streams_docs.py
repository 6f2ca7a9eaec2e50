"""What docs/streams.md shows runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from moldau.streams import JsonSerde, LongSerde, StringSerde, TopologyTestDriver

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "streams.md").read_text(), re.DOTALL)
TEXT, NUMBER = StringSerde(), LongSerde()


def names_of(block: str) -> dict[str, Any]:
    """What a block leaves behind; instead of running an application for ever, its topology is described."""
    names: dict[str, Any] = {"__name__": "docs"}
    exec(
        compile(block.replace("KafkaStreams(builder.build(), config).run()", "builder.build().describe()"), "", "exec"),
        names,
    )
    return names


def block_with(word: str) -> dict[str, Any]:
    (found,) = [block for block in BLOCKS if word in block]
    return names_of(found)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_block_is_whole(number: int) -> None:
    assert "builder" in names_of(BLOCKS[number])


def test_alarms_are_counted_once_per_minute_and_have_their_owner() -> None:
    with TopologyTestDriver(block_with("Suppressed")["topology"]) as driver:
        driver.create_input_topic("owners", TEXT, TEXT).pipe_input("press", "ann", timestamp_ms=0)
        alarms = driver.create_input_topic("alarms", TEXT, TEXT)
        for second in (1, 2, 75):
            alarms.pipe_input("press", "hot", timestamp_ms=second * 1000)

        told = driver.create_output_topic("alarms-per-minute", TEXT, JsonSerde()).read_key_values_to_list()

    assert told == [("press", {"alarms": 2, "owner": "ann"})]


def test_totals_are_told_by_a_schedule() -> None:
    with TopologyTestDriver(block_with("class Totals")["topology"]) as driver:
        amounts = driver.create_input_topic("amounts", TEXT, NUMBER)
        for second, amount in ((0, 5), (4, 6), (11, 1)):
            amounts.pipe_input("ann", amount, timestamp_ms=second * 1000)

        told = driver.create_output_topic("totals", TEXT, NUMBER).read_values_to_list()

    assert told == [5, 12]
