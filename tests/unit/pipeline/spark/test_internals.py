"""`docs/spark-internals.md` lists everything in the source that PySpark does not promise to keep, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[4]
SOURCES = REPOSITORY / "src" / "moldau"
PAGE = REPOSITORY / "docs" / "spark-internals.md"

PUBLIC = {
    "pyspark",
    "pyspark.sql",
    "pyspark.sql.types",
    "pyspark.sql.streaming.query",
    "pyspark.sql.streaming.stateful_processor",
}
"""Modules whose public names PySpark documents."""

IMPORTED = re.compile(r"^\s*(?:from|import) (pyspark[\w.]*)(?: import ([\w, ]+))?", re.MULTILINE)
JAVA = re.compile(r"org\.apache\.(?:spark|hadoop|commons)(?:\.\w+)+")
PRIVATE = re.compile(r"(?<!self)(?<!cls)\.(_[a-zA-Z]\w*)")
DEFINED = re.compile(r"(?:def |class |^)(_[a-zA-Z]\w*)", re.MULTILINE)
PYTHONS_OWN = {"_asdict"}


def used_in(file: Path) -> set[str]:
    text = file.read_text()
    if "pyspark" not in text:
        return set()
    found = set(JAVA.findall(text)) | (set(PRIVATE.findall(text)) - set(DEFINED.findall(text)) - PYTHONS_OWN)
    for module, names in IMPORTED.findall(text):
        inner = {f"{module}.{name}" for name in re.findall(r"\w+", names or "")} & {"pyspark.cloudpickle"}
        found |= inner or ({module} - PUBLIC)
        found |= {name for name in re.findall(r"\w+", names or "") if name.startswith("_")}
    return found


def listed() -> dict[str, set[str]]:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| `pipeline/")]
    return {row[1].strip(" `"): set(re.findall(r"`([^`]+)`", row[2])) for row in rows}


def test_the_page_lists_what_the_source_uses() -> None:
    in_source = {
        str(file.relative_to(SOURCES)): found
        for file in sorted((SOURCES / "pipeline").rglob("*.py"))
        if (found := used_in(file))
    }
    assert listed() == in_source


def test_a_use_of_something_private_would_be_found(tmp_path: Path) -> None:
    file = tmp_path / "new.py"
    file.write_text(
        "from pyspark.sql.pandas import types\nfrom pyspark.sql import Row\n"
        "context._jvm.org.apache.spark.Thing()\nself._own = self._other\n"
    )
    assert used_in(file) == {"pyspark.sql.pandas", "_jvm", "org.apache.spark.Thing"}
