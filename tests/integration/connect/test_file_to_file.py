"""A file through a topic into another file, with tasks in threads."""

from __future__ import annotations

from pathlib import Path

import httpx
from tests.integration.connect.talk import delete
from tests.integration.server_process import wait_until

SOURCE = {"connector.class": "FileStreamSource", "tasks.max": "1"}
SINK = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "tasks.max": "2"}


def test_lines_of_a_file_arrive_in_another(connect: httpx.Client, tmp_path: Path) -> None:
    read, written = tmp_path / "in.txt", tmp_path / "out.txt"
    read.write_text("one\ntwo\n")
    made = connect.post(
        "/connectors", json={"name": "reader", "config": {**SOURCE, "file": str(read), "topic": "lines"}}
    )
    assert made.status_code == 201, made.text
    made = connect.put("/connectors/writer/config", json={**SINK, "file": str(written), "topics": "lines"})
    assert made.status_code == 201, made.text
    wait_until(lambda: written.exists() and written.read_text() == "one\ntwo\n", what="the first lines")
    with read.open("a") as file:
        file.write("three\n")
    wait_until(lambda: written.read_text() == "one\ntwo\nthree\n", what="the third line")
    status = connect.get("/connectors/reader/status").json()
    assert status["connector"]["state"] == "RUNNING"
    assert [one["state"] for one in status["tasks"]] == ["RUNNING"]
    wait_until(
        lambda: connect.get("/connectors/writer/offsets").json()["offsets"][0]["offset"]["kafka_offset"] >= 4,
        what="the commit",
    )
    assert connect.get("/connectors/reader/offsets").json() == {
        "offsets": [{"partition": {"filename": str(read)}, "offset": {"position": 14, "inode": read.stat().st_ino}}]
    }
    for name in ("reader", "writer"):
        delete(connect, name)
