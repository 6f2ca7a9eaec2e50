"""The conformance cases of the SQL language: read, expanded, and assigned to the capabilities that they need.

A case of a file is expanded once for each of its formats. Start at `load_cases`; `capabilities` is the rule that says
in which rows of the table of results a case counts.
"""

from __future__ import annotations

import decimal
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "qtt" / "cases"
NEW_PLANNER = "ksql.new.query.planner.enabled"

Json = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One case, with its format chosen."""

    file: str
    name: str
    statements: tuple[str, ...]
    properties: dict[str, Any]
    content: Json

    @property
    def full_name(self) -> str:
        return f"{self.file} - {self.name}"

    @property
    def expected_error(self) -> Json | None:
        error: Json | None = self.content.get("expectedException")
        return error


def load_cases(folder: Path = FOLDER) -> list[Case]:
    """All cases that can be run, in the order of the files."""
    return [case for path in sorted(folder.glob("*.json")) for case in _cases_of(path)]


def _cases_of(path: Path) -> Iterator[Case]:
    for content in json.loads(path.read_text("utf-8"), parse_float=decimal.Decimal)["tests"]:
        for format_name in content.get("format", [None]):
            case = _expanded(path.stem, content, format_name)
            if case is not None:
                yield case


def _expanded(file: str, content: Json, format_name: str | None) -> Case | None:
    properties = dict(content.get("properties", {}))
    name = content["name"]
    if format_name is not None:
        content = _with_format(content, format_name)
        name = f"{name} - {format_name}"
    if "config" in content:
        properties = {key: False if value == "{CONFIG}" else value for key, value in properties.items()}
    if str(properties.get(NEW_PLANNER, "false")).lower() == "true":
        return None
    return Case(file, name, tuple(content["statements"]), properties, content)


def _with_format(part: Any, format_name: str) -> Any:
    """A part of a case with the name of the format filled in."""
    if isinstance(part, str):
        return part.replace("{FORMAT}", format_name)
    if isinstance(part, list):
        return [_with_format(item, format_name) for item in part]
    if isinstance(part, dict):
        return {_with_format(key, format_name): _with_format(item, format_name) for key, item in part.items()}
    return part


# --- capabilities --------------------------------------------------------------------------------------------

CREATED = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:SOURCE\s+)?(STREAM|TABLE)\s+(?:IF\s+NOT\s+EXISTS\s+)?([`\"\w-]+)"
)
FROM = re.compile(r"\bFROM\s+([`\"\w-]+)")
JOINED = re.compile(r"\bJOIN\s+([`\"\w-]+)")


def capabilities(case: Case) -> frozenset[str]:
    """The rows of the table of results in which a case counts.

    A case that expects an error counts in that row alone. Otherwise each query of the case counts by its words: the
    kind of its join by the kinds of the sources, a window by its name, an aggregation by GROUP BY and the kind of its
    source, and a query with none of these as a select on its source.
    """
    if case.expected_error is not None:
        return frozenset({"error expected"})
    kinds: dict[str, str] = {}
    rows: set[str] = set()
    for statement in case.statements:
        text = _upper(statement)
        created = CREATED.search(text)
        if created is not None:
            kinds[created[2]] = created[1]
        if re.search(r"\bSELECT\b", text):
            rows |= _rows_of_query(text, kinds)
        if "WINDOW_TYPE" in text:
            rows.add("windowed source topic")
    return frozenset(rows or {"stateless select/filter on a stream"})


def _upper(statement: str) -> str:
    return re.sub(r"\s+", " ", statement).upper()


def _rows_of_query(text: str, kinds: dict[str, str]) -> set[str]:
    source = FROM.search(text)
    left = kinds.get(source[1] if source else "", "STREAM")
    joined = JOINED.findall(text)
    rows: set[str] = set()
    if len(joined) > 1:
        rows.add("n-way join")
    for name in joined:
        right = kinds.get(name, "STREAM")
        if left == "TABLE":
            rows.add("table-table join (incl. foreign key)")
        else:
            rows.add("stream-stream join" if right == "STREAM" else "stream-table join")
    if "EMIT FINAL" in text:
        rows.add("EMIT FINAL")
    if "PARTITION BY" in text:
        rows.add("PARTITION BY")
    if re.search(r"\b(EXPLODE|CUBE_EXPLODE)\s*\(", text):
        rows.add("table function")
    if "GROUP BY" in text:
        windows = [word for word in ("TUMBLING", "HOPPING", "SESSION") if re.search(rf"\bWINDOW\b.*\b{word}\b", text)]
        if windows:
            rows.add(f"{windows[0]} aggregation")
        else:
            rows.add("aggregation of a table (undo)" if left == "TABLE" else "unwindowed aggregation of a stream")
    return rows or {f"stateless select/filter on a {left.lower()}"}
