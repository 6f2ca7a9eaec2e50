"""What docs/serdes.md shows runs, and the names that it lists are those that are known."""

from __future__ import annotations

import re
from pathlib import Path

import moldau.serdes
from moldau.serdes.names import KNOWN_NAMES

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "serdes.md").read_text()
ROWS = re.findall(r"^\| (`.*?) \| (.*?) \|", PAGE.split("## Names")[0], re.MULTILINE)


def test_every_example_runs() -> None:
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "docs/serdes.md", "exec"), {"__name__": "docs"})


def test_every_short_name_and_every_serde_is_listed() -> None:
    names = {name for _, cell in ROWS for name in re.findall(r"`(\w+)`", cell)}
    aliases = {"kafkajson", "kafkaavro", "genericavro", "specificavro", "primitiveavro"}
    assert names == set(KNOWN_NAMES) - aliases - {"kafkajsonschema", "kafkaprotobuf"}
    listed = {name for cell, _ in ROWS for name in re.findall(r"`(\w+)", cell)}
    serdes = {name for name in moldau.serdes.__all__ if name.isupper() or name.endswith("Serde")} - {"Serde"}
    numbers = {"ShortSerde", "IntegerSerde", "LongSerde", "FloatSerde", "DoubleSerde"}
    assert serdes - numbers <= listed
