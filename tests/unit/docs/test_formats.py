"""What docs/formats.md shows runs, and it lists the formats that there are."""

from __future__ import annotations

import re
from pathlib import Path

from moldau.formats.format import FORMATS

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "formats.md").read_text()


def test_the_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/formats.md", "exec"), {"__name__": "docs"})


def test_every_format_is_listed_with_its_options() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|(.*)\|$", PAGE, re.MULTILINE))
    assert rows.keys() == FORMATS.keys()
    for name, row in rows.items():
        assert set(re.findall(r"`(\w+)`", row.rpartition("|")[2])) == FORMATS[name].properties
        assert ("registry" in row) == FORMATS[name].uses_registry
