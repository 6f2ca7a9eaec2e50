"""Every row of Connect's REST API, with what it answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.connect.connectors import rows
from tests.integration.connect.talk import COUNTER, SINK, await_states, delete, make
from tests.integration.server_process import wait_until

import moldau
from moldau.testing.connect import ConnectWorker

CONFIG = {"connector.class": COUNTER, "topic": "others", "tasks.max": "2", "parts": "2", "limit": "5"}


@pytest.fixture(scope="module")
def counter(connect: httpx.Client) -> Iterator[str]:
    make(connect, "counter", {**CONFIG, "topic": "numbers"})
    await_states(connect, "counter", "RUNNING", "RUNNING", "RUNNING")
    yield "counter"
    delete(connect, "counter")


def error(answer: httpx.Response) -> tuple[int, str]:
    document = answer.json()
    assert document["error_code"] == answer.status_code
    return answer.status_code, document["message"]


def test_the_worker_tells_of_itself(connect: httpx.Client) -> None:
    root = connect.get("/").json()
    assert root["version"] == moldau.__version__
    assert set(root) == {"version", "commit", "kafka_cluster_id"}
    health = connect.get("/health")
    assert health.status_code == 200
    assert health.json()["status"] == "healthy"
    assert connect.get("/healthz").status_code == 200
    assert connect.get("/readyz").json() == {"ready": True}


def test_connectors_are_listed_and_expanded(connect: httpx.Client, counter: str) -> None:
    assert counter in connect.get("/connectors").json()
    both = connect.get("/connectors?expand=status&expand=info").json()[counter]
    assert both["info"]["type"] == "source"
    assert both["status"]["connector"]["state"] == "RUNNING"
    assert set(connect.get("/connectors?expand=info").json()[counter]) == {"info"}
    assert counter in connect.get("/connectors?expand=nonsense").json()


def test_a_connector_is_made_shown_and_deleted(connect: httpx.Client) -> None:
    answer = connect.post("/connectors", json={"name": " made ", "config": CONFIG})
    assert answer.status_code == 201
    assert answer.headers["location"] == "/connectors/made"
    assert answer.json()["config"] == {**CONFIG, "name": "made"}
    again = connect.post("/connectors", json={"name": "made", "config": CONFIG})
    assert error(again) == (409, "Connector made already exists")
    assert connect.get("/connectors/made/config").json() == {**CONFIG, "name": "made"}
    wait_until(lambda: len(connect.get("/connectors/made").json()["tasks"]) == 2, what="two tasks")
    assert connect.get("/connectors/made").json() == {
        "name": "made",
        "config": {**CONFIG, "name": "made"},
        "tasks": [{"connector": "made", "task": 0}, {"connector": "made", "task": 1}],
        "type": "source",
    }
    assert connect.delete("/connectors/made").status_code == 204
    assert error(connect.get("/connectors/made")) == (404, "Connector made not found")
    assert error(connect.delete("/connectors/made"))[0] == 404
    assert error(connect.get("/connectors/made/status")) == (404, "No status found for connector made")


def test_a_connector_can_begin_paused_or_stopped(connect: httpx.Client) -> None:
    body = {"name": "quiet", "config": CONFIG, "initial_state": "STOPPED"}
    assert connect.post("/connectors", json=body).status_code == 201
    await_states(connect, "quiet", "STOPPED")
    delete(connect, "quiet")
    assert connect.post("/connectors", json={**body, "initial_state": "PAUSED"}).status_code == 201
    await_states(connect, "quiet", "PAUSED", "PAUSED", "PAUSED")
    delete(connect, "quiet")
    status, message = error(connect.post("/connectors", json={**body, "initial_state": "ASLEEP"}))
    assert status == 400
    assert "RUNNING, PAUSED, STOPPED" in message


def test_a_wrong_configuration_is_refused_with_every_bad_key(connect: httpx.Client) -> None:
    bad = {"connector.class": COUNTER, "tasks.max": "none", "parts": "0", "errors.tolerance": "some"}
    status, message = error(connect.post("/connectors", json={"name": "bad", "config": bad}))
    assert status == 400
    assert message.startswith("Connector configuration is invalid and contains the following 4 error(s):\n")
    for key in ("topic", "tasks.max", "parts", "errors.tolerance"):
        assert key in message
    assert message.endswith("`/connector-plugins/{connectorType}/config/validate`")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "x", "config": {"name": "y", "connector.class": COUNTER, "topic": "t"}}, "doesn't match"),
        ({"name": "x", "config": {"connector.class": "NoSuchThing"}}, "NoSuchThing"),
        ({"name": "x", "config": {}}, "connector.class"),
        ({"name": "x"}, "config"),
        ({"config": {"connector.class": COUNTER}}, "name"),
        ({"name": "a/b", "config": {"connector.class": COUNTER, "topic": "t"}}, "name"),
        ([], "config"),
    ],
)
def test_bodies_that_make_no_connector(connect: httpx.Client, body: object, words: str) -> None:
    status, message = error(connect.post("/connectors", json=body))
    assert status == 400
    assert words in message


def test_a_body_that_is_no_json_is_a_bad_request(connect: httpx.Client) -> None:
    answer = connect.post("/connectors", content=b"{", headers={"content-type": "application/json"})
    assert error(answer)[0] == 400


def test_a_configuration_is_put_and_patched(connect: httpx.Client) -> None:
    answer = connect.put("/connectors/changing/config", json=CONFIG)
    assert answer.status_code == 201
    assert answer.headers["location"] == "/connectors/changing"
    assert connect.put("/connectors/changing/config", json={**CONFIG, "limit": 7}).status_code == 200
    assert connect.get("/connectors/changing/config").json()["limit"] == "7"
    patched = connect.patch("/connectors/changing/config", json={"limit": None, "parts": "1"})
    assert patched.status_code == 200
    config = connect.get("/connectors/changing/config").json()
    assert "limit" not in config
    assert config["parts"] == "1"
    await_states(connect, "changing", "RUNNING", "RUNNING")
    delete(connect, "changing")
    assert error(connect.patch("/connectors/changing/config", json={}))[0] == 404


def test_tasks_have_configurations_and_statuses(connect: httpx.Client, counter: str, worker: ConnectWorker) -> None:
    tasks = connect.get(f"/connectors/{counter}/tasks").json()
    assert [one["id"] for one in tasks] == [{"connector": counter, "task": 0}, {"connector": counter, "task": 1}]
    assert [one["config"]["mine"] for one in tasks] == ["0", "1"]
    assert set(connect.get(f"/connectors/{counter}/tasks-config").json()) == {"counter-0", "counter-1"}
    status = connect.get(f"/connectors/{counter}/tasks/1/status").json()
    assert status == {"id": 1, "state": "RUNNING", "worker_id": worker.worker_id}
    assert error(connect.get(f"/connectors/{counter}/tasks/7/status")) == (404, "No status found for task counter-7")
    assert connect.post(f"/connectors/{counter}/tasks/1/restart").status_code == 204
    assert error(connect.post(f"/connectors/{counter}/tasks/7/restart"))[0] == 404
    await_states(connect, counter, "RUNNING", "RUNNING", "RUNNING")


def test_pause_resume_stop(connect: httpx.Client) -> None:
    make(connect, "walk", CONFIG)
    await_states(connect, "walk", "RUNNING", "RUNNING", "RUNNING")
    assert connect.put("/connectors/walk/pause").status_code == 202
    await_states(connect, "walk", "PAUSED", "PAUSED", "PAUSED")
    assert connect.put("/connectors/walk/pause").status_code == 202
    assert connect.put("/connectors/walk/resume").status_code == 202
    await_states(connect, "walk", "RUNNING", "RUNNING", "RUNNING")
    assert connect.put("/connectors/walk/stop").status_code == 204
    await_states(connect, "walk", "STOPPED")
    assert connect.get("/connectors/walk/tasks").json() == []
    assert connect.put("/connectors/walk/resume").status_code == 202
    await_states(connect, "walk", "RUNNING", "RUNNING", "RUNNING")
    delete(connect, "walk")
    assert error(connect.put("/connectors/walk/pause"))[0] == 404


def test_a_task_that_fails_fails_alone_and_is_restarted(connect: httpx.Client, tmp_path: Path) -> None:
    broken, secret = tmp_path / "broken", tmp_path / "secrets"
    broken.touch()
    secret.write_text("word=hunter2 of old\n")
    config = {**CONFIG, "topic": "half", "fail.while": str(broken), "secret": f"${{file:{secret}:word}}"}
    make(connect, "half", config)
    await_states(connect, "half", "RUNNING", "FAILED", "RUNNING")
    status = connect.get("/connectors/half/status")
    trace = status.json()["tasks"][0]["trace"]
    assert "ConnectError: told to fail, and the secret is [hidden]" in trace
    assert "trace" not in status.json()["tasks"][1]
    for path in ("", "/config", "/tasks", "/status", "?expand=status&expand=info"):
        assert "hunter2" not in connect.get(f"/connectors/half{path}").text
    assert connect.get("/connectors/half/config").json()["secret"] == f"${{file:{secret}:word}}"
    assert connect.get("/connectors/half/tasks").json()[0]["config"]["secret"] == f"${{file:{secret}:word}}"

    broken.unlink()
    plan = connect.post("/connectors/half/restart?includeTasks=true&onlyFailed=true")
    assert plan.status_code == 202
    assert [one["state"] for one in plan.json()["tasks"]] == ["RESTARTING", "RUNNING"]
    assert plan.json()["connector"]["state"] == "RUNNING"
    await_states(connect, "half", "RUNNING", "RUNNING", "RUNNING")
    everything = connect.post("/connectors/half/restart?includeTasks=true").json()
    assert everything["connector"]["state"] == "RESTARTING"
    assert [one["state"] for one in everything["tasks"]] == ["RESTARTING", "RESTARTING"]
    await_states(connect, "half", "RUNNING", "RUNNING", "RUNNING")
    assert connect.post("/connectors/half/restart").status_code == 204
    assert error(connect.post("/connectors/nobody/restart"))[0] == 404
    delete(connect, "half")


def test_topics_are_tracked_and_reset(connect: httpx.Client, counter: str) -> None:
    topics = f"/connectors/{counter}/topics"
    wait_until(lambda: connect.get(topics).json() == {counter: {"topics": ["numbers"]}}, what="the topic")
    assert connect.put(f"{topics}/reset").status_code == 202
    assert error(connect.get("/connectors/nobody/topics"))[0] == 404


def test_source_offsets_are_read_changed_and_reset(connect: httpx.Client) -> None:
    make(connect, "going", {**CONFIG, "topic": "going", "tasks.max": "1"})
    expected = [
        {"partition": {"part": "0"}, "offset": {"next": 5}},
        {"partition": {"part": "1"}, "offset": {"next": 5}},
    ]
    offsets = "/connectors/going/offsets"

    def stored() -> list[object]:
        return sorted(connect.get(offsets).json()["offsets"], key=lambda one: one["partition"]["part"])

    wait_until(lambda: stored() == expected, what="the offsets")
    refused = "Connectors must be in the STOPPED state before their offsets can be"
    change = {"offsets": [{"partition": {"part": "0"}, "offset": {"next": 2}}]}
    assert error(connect.patch(offsets, json=change))[1].startswith(f"{refused} altered")
    assert error(connect.delete(offsets))[1].startswith(f"{refused} reset")
    assert connect.put("/connectors/going/stop").status_code == 204
    await_states(connect, "going", "STOPPED")
    assert error(connect.patch(offsets, json={"offsets": []}))[0] == 400
    assert error(connect.patch(offsets, json={"offsets": [{"offset": None}]}))[0] == 400
    answer = connect.patch(offsets, json=change)
    assert answer.status_code == 200
    assert "altered successfully" in answer.json()["message"]
    assert stored() == [{"partition": {"part": "0"}, "offset": {"next": 2}}, expected[1]]
    one_gone = connect.patch(offsets, json={"offsets": [{"partition": {"part": "0"}, "offset": None}]})
    assert one_gone.status_code == 200
    assert stored() == [expected[1]]
    assert "reset successfully" in connect.delete(offsets).json()["message"]
    assert stored() == []
    connect.put("/connectors/going/resume")
    wait_until(lambda: stored() == expected, what="the offsets again")
    delete(connect, "going")


def test_sink_offsets_are_those_of_its_group(connect: httpx.Client, tmp_path: Path) -> None:
    database = tmp_path / "rows.db"
    make(connect, "giver", {**CONFIG, "topic": "kept"})
    make(connect, "keeper", {"connector.class": SINK, "topics": "kept", "database": str(database)})
    wait_until(lambda: len(rows(database)) == 10, what="all rows")
    offsets = "/connectors/keeper/offsets"

    def stored() -> list[dict[str, dict[str, object]]]:
        found: list[dict[str, dict[str, object]]] = connect.get(offsets).json()["offsets"]
        return found

    wait_until(lambda: len(stored()) == 1, what="the commit")
    assert stored()[0]["partition"] == {"kafka_topic": "kept", "kafka_partition": 0}
    connect.put("/connectors/keeper/stop")
    await_states(connect, "keeper", "STOPPED")
    bad = {"offsets": [{"partition": {"topic": "kept"}, "offset": {"kafka_offset": 3}}]}
    assert error(connect.patch(offsets, json=bad))[0] == 400
    partition = {"kafka_topic": "kept", "kafka_partition": 0}
    answer = connect.patch(offsets, json={"offsets": [{"partition": partition, "offset": {"kafka_offset": 3}}]})
    assert answer.status_code == 200, answer.text
    assert stored() == [{"partition": partition, "offset": {"kafka_offset": 3}}]
    assert connect.delete(offsets).status_code == 200
    assert stored() == []
    delete(connect, "keeper")
    delete(connect, "giver")


def test_plugins_are_listed_with_their_settings(connect: httpx.Client) -> None:
    connectors = connect.get("/connector-plugins").json()
    file_source = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    assert {"class": file_source, "type": "source", "version": moldau.__version__} in connectors
    assert {one["type"] for one in connectors} == {"source", "sink"}
    everything = connect.get("/connector-plugins?connectorsOnly=false").json()
    assert {"transformation", "predicate", "converter", "header_converter"} <= {one["type"] for one in everything}
    for name in (file_source, "FileStreamSourceConnector", "FileStreamSource"):
        keys = {one["name"]: one for one in connect.get(f"/connector-plugins/{name}/config").json()}
        assert keys["topic"]["required"] is True
        assert keys["tasks.max"]["default_value"] == "1"
    assert error(connect.get("/connector-plugins/Nothing/config"))[0] == 404


def test_a_configuration_is_validated(connect: httpx.Client) -> None:
    path = "/connector-plugins/FileStreamSink/config/validate"
    good = {"connector.class": "FileStreamSink", "name": "x", "topics": "t", "file": "/tmp/x"}
    answer = connect.put(path, json=good)
    assert answer.status_code == 200
    assert answer.json()["error_count"] == 0, answer.text
    assert answer.json()["name"] == "FileStreamSink"
    assert {"Common", "Error Handling"} <= set(answer.json()["groups"])
    bad = connect.put(path, json={**good, "topics.regex": "a.*", "transforms": "t"}).json()
    errors = {one["value"]["name"]: one["value"]["errors"] for one in bad["configs"] if one["value"]["errors"]}
    assert set(errors) == {"topics", "topics.regex", "transforms.t.type"}
    assert bad["error_count"] == 3
    assert set(bad["configs"][0]["definition"]) >= {"name", "type", "required", "importance", "order_in_group"}
    other = connect.put(path, json={**good, "connector.class": "FileStreamSource"})
    assert error(other)[0] == 400
    assert "does not match" in error(other)[1]


def test_loggers_are_shown_and_set(connect: httpx.Client) -> None:
    assert set(connect.get("/admin/loggers").json()["root"]) == {"level", "last_modified"}
    changed = connect.put("/admin/loggers/moldau.connect.errors", json={"level": "debug"})
    assert changed.status_code == 200
    assert changed.json() == ["moldau.connect.errors"]
    shown = connect.get("/admin/loggers/moldau.connect.errors").json()
    assert shown["level"] == "DEBUG"
    assert shown["last_modified"] is not None
    assert error(connect.get("/admin/loggers/no.such.logger"))[0] == 404
    assert error(connect.put("/admin/loggers/moldau.connect.errors", json={"level": "LOUD"}))[0] == 404
    assert error(connect.put("/admin/loggers/moldau.connect.errors", json={}))[0] == 400
    cluster = connect.put("/admin/loggers/moldau.connect.errors?scope=cluster", json={"level": "WARN"})
    assert cluster.status_code == 204
    wait_until(
        lambda: connect.get("/admin/loggers/moldau.connect.errors").json()["level"] == "WARN",
        what="the cluster's level",
    )


def test_metrics_have_connects_names(connect: httpx.Client, counter: str) -> None:
    def has(line: str) -> bool:
        return line in connect.get("/metrics").text

    wait_until(lambda: has('kafka_connect_source_task_source_record_write_total{connector="counter",task="0"} 5'))
    assert has('kafka_connect_connector_task_status{connector="counter",task="1",status="running"} 1')
    assert has("kafka_connect_worker_connector_count")


def test_a_connector_tells_what_it_connects_and_how_it_does(connect: httpx.Client, counter: str) -> None:
    wait_until(lambda: connect.get(f"/connectors/{counter}/topics").json()[counter]["topics"] == ["numbers"])
    graph = connect.get(f"/topology/{counter}").json()
    assert {node["id"]: node["kind"] for node in graph["nodes"]} == {
        "connector:counter": "connector",
        "topic:numbers": "topic",
    }
    assert graph["edges"] == [{"from": "connector:counter", "to": "topic:numbers", "kind": "flow"}]
    drawing = connect.get("/topology", headers={"accept": "text/vnd.mermaid"})
    assert 'c0{{"counter"}}' in drawing.text
    progress = connect.get(f"/progress/{counter}").json()
    assert (progress["state"], progress["type"], len(progress["tasks"])) == ("RUNNING", "source", 2)
    wait_until(lambda: all("source-record-write-total" in one["metrics"] for one in _tasks(connect, counter)))
    assert error(connect.get("/progress/not-there"))[0] == 404


def _tasks(connect: httpx.Client, name: str) -> list[dict[str, Any]]:
    return list(connect.get(f"/progress/{name}").json()["tasks"])


def test_a_sink_tells_its_lag(connect: httpx.Client, counter: str, tmp_path: Path) -> None:
    make(connect, "reader", {"connector.class": SINK, "topics": "numbers", "database": str(tmp_path / "read.db")})
    graph = connect.get("/topology").json()
    ways = {(one["from"], one["to"]) for one in graph["edges"]}
    assert {("connector:counter", "topic:numbers"), ("topic:numbers", "connector:reader")} <= ways
    wait_until(lambda: "lag" in connect.get("/progress/reader").json())
    delete(connect, "reader")
