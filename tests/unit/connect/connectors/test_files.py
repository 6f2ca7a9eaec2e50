"""CSV and JSON-lines files: each row once, finished files moved, broken rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.connect.api import ConfigError, ConnectError
from moldau.connect.testing import SourceRunner


def source(path: Path, **more: str) -> SourceRunner:
    settings = {"topic": "rows", "input.path": str(path)}
    settings.update({key.replace("_", "."): value for key, value in more.items()})
    return SourceRunner("FileSource", settings, max_tasks=2)


def test_csv_with_quotes_over_lines_and_a_restart_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('\ufeffid,name\n1,"two\nlines, and a comma"\n2,žluť\n3,\n', encoding="utf-8")
    with source(path, key_field="id", batch_size="1") as runner:
        (first,) = runner.poll_until(1)
        assert first.value == {"id": "1", "name": "two\nlines, and a comma"}
        assert (first.key, first.topic) == ("1", "rows")
        runner.commit()
        runner.poll_until(1)
        runner.restart()
        rest = runner.poll_until(2)
        assert [record.value for record in rest] == [{"id": "2", "name": "žluť"}, {"id": "3", "name": None}]


def test_a_folder_of_json_lines_whose_files_are_moved_when_their_rows_are_stored(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "done").mkdir()
    for number in range(4):
        (tmp_path / "in" / f"{number}.json").write_text(f'{{"n": {number}}}\n\n{{"n": [{number}]}}\n')
    (tmp_path / "in" / "other.txt").write_text("not this one")
    options = {"format": "json", "input_file_pattern": r".*\.json", "finished_path": str(tmp_path / "done")}
    with source(tmp_path / "in", **options) as runner:
        records = runner.poll_until(8)
        assert sorted(str(record.value["n"]) for record in records) == sorted(
            [*map(str, range(4)), *(f"[{n}]" for n in range(4))]
        )
        assert records[0].value_schema is None
        assert len(list((tmp_path / "done").iterdir())) == 0
        runner.commit()
        assert len(list((tmp_path / "done").iterdir())) == 4
        (tmp_path / "in" / "later.json").write_text('{"n": 9}\n')
        assert [record.value for record in runner.poll_until(1)] == [{"n": 9}]


def test_files_that_stay_are_remembered(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    with source(tmp_path) as runner:
        runner.poll_until(1)
        runner.commit()
        runner.restart()
        assert runner.poll() == []
        assert runner.poll() == []
        (tmp_path / "b.csv").write_text("x\n2\n")
        assert [record.value for record in runner.poll_until(1)] == [{"x": "2"}]


def test_a_broken_row_fails_the_task_or_puts_the_file_aside(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "in" / "a.csv").write_text("x,y\n0,0\n1,2,3\n")
    with source(tmp_path / "in") as runner, pytest.raises(ConnectError, match="3 values for 2 columns"):
        runner.poll_until(2)
    (tmp_path / "in" / "b.csv").write_text("x,y\n5,6\n")
    with source(tmp_path / "in", halt_on_error="false", error_path=str(tmp_path / "bad")) as runner:
        assert [record.value["x"] for record in runner.poll_until(2)] == ["0", "5"]
        assert runner.poll() == []
    assert [path.name for path in (tmp_path / "bad").iterdir()] == ["a.csv"]


def test_wrong_settings(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        source(tmp_path, cleanup_policy="move", csv_separator_char=";;", format="xml").start()
    for key in ("finished.path", "csv.separator.char", "format"):
        assert key in str(caught.value)
