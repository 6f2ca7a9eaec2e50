"""The file connectors on real files: lines, tails, rotation, truncation, restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.connect.api import ConfigError, ConnectError, Limits, NotAllowedError, SinkRecord, SourceRecord, struct
from moldau.connect.api.schemas import INT32, STRING
from moldau.connect.testing import SinkRunner, SourceRunner


def values(records: list[SourceRecord]) -> list[str]:
    return [record.value for record in records]


def source(path: Path, **more: str) -> SourceRunner:
    return SourceRunner("FileStreamSource", {"file": str(path), "topic": "lines", **more})


def test_lines_have_three_kinds_of_ends_and_a_last_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes(b"one\ntwo\r\nthree\rfour")
    with source(path) as runner:
        records = runner.poll_until(3)
        assert values(records) == ["one", "two", "three"]
        assert [record.source_offset and record.source_offset["position"] for record in records] == [4, 9, 15]
        assert records[0].source_partition == {"filename": str(path)}
        assert runner.poll() == []
        with path.open("ab") as more:
            more.write("é\n".encode())
        assert values(runner.poll_until(1)) == ["fouré"]


def test_a_restart_goes_on_where_the_offsets_end(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("".join(f"line {number}\n" for number in range(10)))
    with source(path, **{"batch.size": "3"}) as runner:
        assert len(runner.poll_until(3)) == 3
        runner.commit()
        assert len(runner.poll_until(3)) == 3
        runner.restart()
        assert values(runner.poll_until(7))[0] == "line 3"


def test_a_rotated_file_is_read_to_its_end_and_then_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("a\n")
    with source(path) as runner:
        assert values(runner.poll_until(1)) == ["a"]
        with path.open("a") as more:
            more.write("b\nlast words")
        path.rename(tmp_path / "app.log.1")
        path.write_text("c\n")
        assert values(runner.poll_until(3)) == ["b", "last words", "c"]


def test_a_truncated_file_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("a long first line\n")
    with source(path) as runner:
        runner.poll_until(1)
        runner.commit()
        path.write_text("b\n")
        assert values(runner.poll_until(1)) == ["b"]
        runner.commit()
        path.write_text("")
        runner.restart()
        assert runner.poll() == []
        path.write_text("new\n")
        assert values(runner.poll_until(1)) == ["new"]


def test_a_file_that_is_replaced_while_the_source_is_stopped_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("old\n")
    runner = source(path)
    with runner:
        runner.poll_until(1)
        runner.commit()
    path.rename(tmp_path / "old.log")
    path.write_text("new one\nnew two\n")
    with runner:
        assert values(runner.poll_until(2)) == ["new one", "new two"]


def test_a_missing_file_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "later.txt"
    with source(path) as runner:
        assert runner.poll() == []
        path.write_text("here\n")
        assert values(runner.poll_until(1)) == ["here"]


def test_every_bad_setting_is_named_at_once(tmp_path: Path) -> None:
    runner = SourceRunner("FileStreamSource", {"batch.size": "none", "topics": "x"})
    with pytest.raises(ConfigError) as caught:
        runner.start()
    assert len(caught.value.problems) == 2
    assert "batch.size" in str(caught.value)
    assert '"topic"' in str(caught.value)
    assert "topics was given" in str(caught.value)


def test_the_workers_limits_hold_for_links_too(tmp_path: Path) -> None:
    (tmp_path / "allowed").mkdir()
    (tmp_path / "allowed" / "link").symlink_to(tmp_path / "secret")
    limits = Limits.of([str(tmp_path / "allowed")], [])
    runner = SourceRunner("FileStreamSource", {"file": str(tmp_path / "allowed" / "link"), "topic": "t"}, limits=limits)
    with pytest.raises(NotAllowedError, match="connectors may not touch"):
        runner.start()


def test_the_sink_appends_texts_as_java_prints_them(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    schema = struct({"id": INT32, "name": STRING})
    with SinkRunner("FileStreamSink", {"file": str(path)}) as runner:
        runner.put(
            [
                SinkRecord(topic="t", partition=0, offset=0, value="text", value_schema=STRING),
                SinkRecord(topic="t", partition=0, offset=1, value={"id": 1, "name": "x"}, value_schema=schema),
                SinkRecord(topic="t", partition=0, offset=2, value={"a": [1.0, None]}),
                SinkRecord(topic="t", partition=0, offset=3, value=None),
            ]
        )
        assert path.read_text() == "text\nStruct{id=1,name=x}\n{a=[1.0, null]}\nnull\n", "others read it at once"
        assert runner.commit() == {("t", 0): 4}


def test_a_sink_without_its_folder_says_so(tmp_path: Path) -> None:
    runner = SinkRunner("FileStreamSink", {"file": str(tmp_path / "no" / "out.txt")})
    with pytest.raises(ConnectError, match="make its folder"):
        runner.start()
    runner.stop()
