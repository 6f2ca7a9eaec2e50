"""The tables of results: one row a test, one column a broker, kept as CSV beside each suite.

A run fills in only the column it ran for. `waits_for` and `note` are people's columns and survive every run.
Start at `Table`.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

__all__ = ["COLUMNS", "Outcome", "Table", "allowed"]

COLUMNS = {
    "librdkafka": tuple(
        f"{broker}{mode}" for mode in ("", "_idempotent", "_consumer_protocol") for broker in ("kafka", "moldau")
    ),
    "kafka-python": ("kafka", "moldau"),
}
PEOPLE_COLUMNS = ("waits_for", "note")


class Outcome(StrEnum):
    """What came of one test on one broker."""

    PASS = "pass"
    FAIL = "fail"
    TIMEOUT = "timeout"
    SKIP = "skip"
    """The suite itself decided that the test does not apply."""


class Table:
    """A results file in memory, sorted by test name when saved."""

    def __init__(self, path: Path, columns: Iterable[str]) -> None:
        self.path = path
        self.columns = ("test", *columns, *PEOPLE_COLUMNS)
        self.rows: dict[str, dict[str, str]] = {}
        self.load()

    def load(self) -> None:
        if self.path.exists():
            with self.path.open(newline="") as lines:
                self.rows = {row["test"]: row for row in csv.DictReader(lines)}

    def record(self, test: str, column: str, outcome: Outcome) -> None:
        """Set one cell and save. Reads the file anew first, so that two runs may fill two columns at once."""
        self.load()
        self.rows.setdefault(test, {"test": test})[column] = outcome.value
        self.save()

    def save(self) -> None:
        with self.path.open("w", newline="") as lines:
            writer = csv.DictWriter(lines, self.columns, restval="", extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows[test] for test in sorted(self.rows))

    def totals(self, column: str) -> Counter[str]:
        return Counter(row[column] for row in self.rows.values() if row.get(column))


def allowed(path: Path) -> list[str]:
    """The tests that have to pass on moldau: one name a line, `#` begins a comment."""
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]
