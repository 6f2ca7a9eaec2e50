"""The doctor finds what is there, and says what to do about the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moldau.cli import doctor
from moldau.cli.doctor import Finding
from moldau.cli.main import main


def test_findings_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])

    shown = capsys.readouterr().out
    assert all(word in shown for word in ("CHECK", "Python", "Java", "pyspark", "port 9092", "disk", "memory"))


def test_a_problem_is_the_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "CHECKS", (lambda: [Finding("Java", "problem", "none", "install one")],))

    assert main(["doctor", "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == [
        {"check": "Java", "state": "problem", "found": "none", "advice": "install one"}
    ]


def test_missing_java_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    (finding,) = doctor.check_java()

    assert finding.state == "problem"
    assert "JAVA_HOME" in finding.advice


def test_missing_jars_are_no_problem_yet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MOLDAU_CACHE", str(tmp_path))

    (finding,) = doctor.check_jars()

    assert (finding.state, finding.advice) == ("warning", "fetch them: moldau streams prepare")
