"""`ksql-test-runner` passes and fails as the records do, and explains mistakes in its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.cli.ksql.test_runner.command import main

STATEMENTS = """
CREATE STREAM orders (id INT KEY, customer STRING, amount DECIMAL(6, 2))
  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON');
CREATE STREAM large AS SELECT * FROM orders WHERE amount > 100.00;
CREATE TABLE totals AS SELECT customer, COUNT(*) AS n FROM large GROUP BY customer
"""
INPUTS = [
    {"topic": "orders", "timestamp": 1, "key": 1, "value": {"CUSTOMER": "anna", "AMOUNT": 150.25}},
    {"topic": "orders", "timestamp": 2, "key": 2, "value": {"CUSTOMER": "bob", "AMOUNT": 1.00}},
    {"topic": "orders", "timestamp": 3, "key": 3, "value": {"CUSTOMER": "anna", "AMOUNT": 300}},
]
OUTPUTS = [
    {"topic": "LARGE", "timestamp": 1, "key": 1, "value": {"CUSTOMER": "anna", "AMOUNT": 150.25}},
    {"topic": "LARGE", "timestamp": 3, "key": 3, "value": {"CUSTOMER": "anna", "AMOUNT": 300.00}},
    {"topic": "TOTALS", "timestamp": 1, "key": "anna", "value": {"N": 1}},
    {"topic": "TOTALS", "timestamp": 3, "key": "anna", "value": {"N": 2}},
]


def run(folder: Path, statements: str, inputs: Any, outputs: Any) -> int:
    (folder / "s.sql").write_text(statements)
    (folder / "i.json").write_text(json.dumps(inputs) if not isinstance(inputs, str) else inputs)
    # Two digits behind the point, as DECIMAL(6, 2) writes them.
    (folder / "o.json").write_text(json.dumps(outputs).replace("300.0}", "300.00}"))
    return main(["-s", str(folder / "s.sql"), "-i", str(folder / "i.json"), "-o", str(folder / "o.json")])


def test_the_expected_records_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(tmp_path, STATEMENTS, {"inputs": INPUTS}, {"outputs": OUTPUTS})

    assert (code, capsys.readouterr().out) == (0, "\t >>> Test passed!\n")


@pytest.mark.parametrize(
    "case",
    [
        (STATEMENTS, {"inputs": INPUTS}, {"outputs": OUTPUTS[1:]}, "LARGE 0: key 1, expected 3"),
        (STATEMENTS, {"inputs": INPUTS}, {"outputs": OUTPUTS[:1]}, "LARGE: 2 records, expected 1"),
        (STATEMENTS, {"inputs": INPUTS}, {"outputs": [{"topic": "NO"}]}, "no source has the topic NO"),
        ("CREATE STREAM a AS SELECT * FROM b;", {"inputs": INPUTS}, {"outputs": OUTPUTS}, "`B` does not exist"),
        ("SELEC;", {"inputs": INPUTS}, {"outputs": OUTPUTS}, "Syntax Error"),
        (STATEMENTS, "{", {"outputs": OUTPUTS}, "i.json is not JSON"),
        (STATEMENTS, {"input": []}, {"outputs": OUTPUTS}, 'must hold an object with "inputs"'),
        (STATEMENTS, {"inputs": [{}]}, {"outputs": OUTPUTS}, 'record 0 of "inputs" needs a "topic"'),
        (STATEMENTS, {"inputs": INPUTS}, {}, 'must hold an object with "outputs"'),
        (
            STATEMENTS,
            {"inputs": [{"topic": "orders", "key": "x", "value": {}}]},
            {"outputs": OUTPUTS},
            "Input record 0 does not fit the topic orders",
        ),
    ],
)
def test_what_is_wrong_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: tuple[str, Any, Any, str]
) -> None:
    statements, inputs, outputs, message = case
    assert run(tmp_path, statements, inputs, outputs) == 1
    told = capsys.readouterr().err
    assert told.startswith("\t >>>>> Test failed: ")
    assert message in told


def test_inserted_records_need_no_input_file(tmp_path: Path) -> None:
    statements = STATEMENTS + ";INSERT INTO orders (ROWTIME, id, customer, amount) VALUES (7, 1, 'anna', 500.00);"
    (tmp_path / "s.sql").write_text(statements)
    expected = {"topic": "TOTALS", "timestamp": 7, "key": "anna", "value": {"N": 1}}
    (tmp_path / "o.json").write_text(json.dumps({"outputs": [expected]}))

    assert main(["-s", str(tmp_path / "s.sql"), "-o", str(tmp_path / "o.json")]) == 0
