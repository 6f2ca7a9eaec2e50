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


PASSED = "[0001_a   /  0.142s] \x1b[32m===== Test 0001_a PASSED =====\x1b[0m"
SKIPPED = "[0001_a   /  0.000s] \x1b[32m===== Test 0001_a SKIPPED =====\x1b[0m"


@pytest.mark.parametrize(
    ("output", "return_code", "outcome"),
    [
        (PASSED, 0, Outcome.PASS),
        (SKIPPED, 0, Outcome.SKIP),
        ('### Test "0001_a (part)" failed at line 1 ###', 1, Outcome.FAIL),
        ("test-runner: assertion failed", -6, Outcome.FAIL),
        (f'{PASSED}\n### Test "<MAIN>" failed: threads are left ###', 1, Outcome.FAIL),
        (f'{PASSED}\n### Test "0001_a_with_more" failed at line 1 ###', 1, Outcome.PASS),
        ("[0001_a_with_more] ===== Test 0001_a_with_more PASSED =====", 0, Outcome.FAIL),
    ],
)
def test_the_runner_tells_what_came_of_a_test(output: str, return_code: int, outcome: Outcome) -> None:
    assert outcome_of("0001_a", f"noise\n{output}\n", return_code) is outcome


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("[0001_a  /  0.000s] 0001_a: duration 0.017ms", True),
        ("[0001_a  /  0.142s] 0001_a: duration 142.017ms", False),
        ("[0001_a  /  0.000s] WARN: SKIPPING TEST: left out in quick mode", True),
        ("[0001_a  /  0.000s] WARN: SKIPPING TEST: needs SASL\n[0001_a  /  0.000s] 0001_a: duration 0.017ms", False),
    ],
)
def test_a_test_that_quick_mode_left_empty_is_noticed(output: str, expected: bool) -> None:
    assert has_done_nothing("0001_a", output) is expected


def test_a_test_runs_in_the_first_scenario_that_there_is() -> None:
    assert scenario_of(" 0, TEST_BRKVER(0, 9, 0, 0)") == "default"
    assert scenario_of(' 0, .scenario = "ak23,default"') == "default"
    assert scenario_of(' 0, .scenario = "noautocreate"') == "noautocreate"
