"""The tables of results and the lists of tests that have to pass agree, and no failure goes unexplained."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.compat.librdkafka.suite import has_done_nothing, outcome_of, scenario_of
from tests.compat.results import COLUMNS, Outcome, Table, allowed

HERE = Path(__file__).parent
SUITES = {"librdkafka": HERE / "librdkafka", "kafka-python": HERE / "kafka_python"}


@pytest.mark.parametrize("suite", SUITES)
def test_the_tests_that_have_to_pass_are_those_that_did(suite: str) -> None:
    table = Table(SUITES[suite] / "results.csv", COLUMNS[suite])

    passed = {name for name, row in table.rows.items() if row["moldau"] == Outcome.PASS}

    assert set(allowed(SUITES[suite] / "tests.allow")) == passed


@pytest.mark.parametrize("suite", SUITES)
def test_what_moldau_does_not_pass_has_a_reason(suite: str) -> None:
    table = Table(SUITES[suite] / "results.csv", COLUMNS[suite])

    unexplained = [
        name
        for name, row in table.rows.items()
        if row["moldau"] != Outcome.PASS and not (row["waits_for"] or row["note"])
    ]

    assert not unexplained


def test_a_table_keeps_what_people_wrote(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("test,kafka,moldau,waits_for,note\n0002_b,pass,fail,groups,joins one\n")
    table = Table(path, COLUMNS["kafka-python"])

    table.record("0002_b", "moldau", Outcome.PASS)
    table.record("0001_a", "kafka", Outcome.SKIP)

    assert path.read_text().splitlines() == [
        "test,kafka,moldau,waits_for,note",
        "0001_a,skip,,,",
        "0002_b,pass,pass,groups,joins one",
    ]


@pytest.mark.parametrize(
    ("summary", "return_code", "outcome"),
    [
        ("|\x1b[32m 0001_a    |     PASSED |   1.365s \x1b[0m|", 0, Outcome.PASS),
        ("|\x1b[36m 0001_a    |    SKIPPED |   0.000s \x1b[0m| quick mode", 0, Outcome.SKIP),
        ("|\x1b[31m 0001_a    |     FAILED |   1.365s \x1b[0m|", 1, Outcome.FAIL),
        ("|\x1b[32m 0001_a_local |     PASSED |   1.365s \x1b[0m|", 0, Outcome.FAIL),
        ("test-runner: assertion failed", -6, Outcome.FAIL),
    ],
)
def test_the_runners_summary_tells_what_came_of_a_test(summary: str, return_code: int, outcome: Outcome) -> None:
    assert outcome_of("0001_a", f"noise\n{summary}\n", return_code) is outcome


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("| 0001_a    |     PASSED |   0.000s |", True),
        ("| 0001_a    |     PASSED |   0.142s |", False),
        ("| 0001_a    |    SKIPPED |   0.000s | left out in quick mode", True),
        ("| 0001_a    |    SKIPPED |   0.000s | needs SASL", False),
    ],
)
def test_a_test_that_quick_mode_left_empty_is_noticed(summary: str, expected: bool) -> None:
    assert has_done_nothing("0001_a", summary) is expected


def test_a_test_runs_in_the_first_scenario_that_there_is() -> None:
    assert scenario_of(" 0, TEST_BRKVER(0, 9, 0, 0)") == "default"
    assert scenario_of(' 0, .scenario = "ak23,default"') == "default"
    assert scenario_of(' 0, .scenario = "noautocreate"') == "noautocreate"
