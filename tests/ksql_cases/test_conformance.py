"""The conformance cases of SQL: all pass but those that `known_failures.txt` lists with a reason.

The cases are data from elsewhere and not part of the project, so without them there is nothing to run.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.ksql_cases.cases import FOLDER, Case, capabilities, load_cases
from tests.ksql_cases.runner import Result, run_case

KNOWN = Path(__file__).with_name("known_failures.txt")
MOST_KNOWN = 0
"""The list may only become shorter: lower this number with it."""

TOTAL_SHARE, ROW_SHARE, SMALL_ROW = 0.95, 0.85, 20

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the conformance cases are not beside the project")


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return [run_case(case) for case in load_cases()]


def known_failures() -> dict[str, str]:
    """Reasons by the full names of cases."""
    lines = [line for line in KNOWN.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, _, reason in (line.rpartition(" | ") for line in lines)}


def test_only_known_cases_fail(results: list[Result]) -> None:
    failed = {result.case.full_name: result.reason for result in results if not result.passed}
    assert {name: reason for name, reason in failed.items() if name not in known_failures()} == {}


def test_the_known_failures_are_few_and_still_fail(results: list[Result]) -> None:
    known = known_failures()
    passed = {result.case.full_name for result in results if result.passed}
    assert sorted(passed & set(known)) == [], "these pass: take them out of known_failures.txt"
    assert len(known) <= MOST_KNOWN
    assert all(known.values()), "every known failure has a reason"


def test_enough_cases_pass_in_all_and_in_every_row(results: list[Result]) -> None:
    assert sum(result.passed for result in results) >= TOTAL_SHARE * len(results)
    rows: dict[str, list[bool]] = {}
    for result in results:
        for row in capabilities(result.case):
            rows.setdefault(row, []).append(result.passed)
    for row, passed in rows.items():
        allowed = 1 if len(passed) < SMALL_ROW else len(passed) * (1 - ROW_SHARE)
        assert len(passed) - sum(passed) <= allowed, row


def test_equal_keys_meet_in_several_partitions() -> None:
    """Results do not depend on the number of partitions, unless they show it or depend on the time of a partition."""

    def depends_on_partitions(case: Case) -> bool:
        text = f"{case.full_name} {case.content}".upper()
        return any(word in text for word in ("ROWPARTITION", "ROWOFFSET", "OUT OF ORDER", "EMIT FINAL"))

    cases = [case for case in load_cases() if case.expected_error is None and not depends_on_partitions(case)]
    results = [run_case(case, partitions=3) for case in cases]
    assert len(results) > 1000
    assert {result.case.full_name: result.reason for result in results if not result.passed} == {}
