"""What the server says of itself, of its commands and of properties."""

from __future__ import annotations

import httpx
import pytest
from tests.integration.ksql.talk import name, refused, run, stream
from tests.integration.server_process import wait_until
from tests.ksql_cases.rest_runner import RestServer

import moldau


def test_the_root_leads_to_the_information(ksql: httpx.Client) -> None:
    answer = ksql.get("/")
    assert (answer.status_code, answer.headers["location"]) == (307, "/info")


def test_information(ksql: httpx.Client, server: RestServer) -> None:
    info = ksql.get("/info").json()["KsqlServerInfo"]
    assert info["version"] == moldau.__version__
    assert info["ksqlServiceId"] == server.service_id
    assert info["serverStatus"] == "RUNNING"
    assert info["kafkaClusterId"]


def test_health(ksql: httpx.Client) -> None:
    details = {part: {"isHealthy": True} for part in ("metastore", "kafka", "commandRunner")}
    assert ksql.get("/healthcheck").json() == {"isHealthy": True, "details": details, "serverState": "READY"}
    assert ksql.get("/chc/live").status_code == ksql.get("/chc/ready").status_code == 200


def test_ids_of_the_clusters(ksql: httpx.Client, server: RestServer) -> None:
    found = ksql.get("/v1/metadata/id").json()
    assert found["scope"]["clusters"]["ksql-cluster"] == server.service_id
    assert found["id"] == ""


def test_the_cluster_has_this_server(ksql: httpx.Client) -> None:
    [(_, status)] = ksql.get("/clusterStatus").json()["clusterStatus"].items()
    assert status["hostAlive"] is True


def test_unknown_paths_are_not_found_in_plain_text(ksql: httpx.Client) -> None:
    answer = ksql.get("/nowhere")
    assert (answer.status_code, answer.text) == (404, "Not Found")


def test_a_type_that_the_server_does_not_speak(ksql: httpx.Client) -> None:
    assert ksql.get("/info", headers={"accept": "text/csv"}).status_code == 406


@pytest.mark.parametrize("accepted", ["application/vnd.ksql.v1+json", "application/json", "*/*"])
def test_types_that_it_speaks(ksql: httpx.Client, accepted: str) -> None:
    assert ksql.get("/info", headers={"accept": accepted}).status_code == 200


def test_the_status_of_commands(ksql: httpx.Client) -> None:
    made = stream(ksql)
    expected = {"status": "SUCCESS", "message": "Stream created", "queryId": None}
    assert ksql.get(f"/status/stream/`{made}`/create").json() == expected
    assert ksql.get(f"/status/stream/{made}/create").json() == expected
    assert ksql.get("/status").json()["commandStatuses"][f"stream/`{made}`/create"] == "SUCCESS"


def test_the_status_of_an_unknown_command(ksql: httpx.Client) -> None:
    answer = ksql.get("/status/stream/NOBODY/create")
    assert answer.status_code == 404
    assert answer.json() == {"@type": "generic_error", "error_code": 40400, "message": "Command not found"}


def test_properties_that_a_session_may_set(ksql: httpx.Client) -> None:
    assert ksql.get("/is_valid_property/auto.offset.reset").json() is True
    assert ksql.get("/is_valid_property/ksql.streams.auto.offset.reset").json() is True
    answer = ksql.get("/is_valid_property/ksql.service.id")
    assert (answer.status_code, answer.json()["error_code"]) == (400, 40000)


def test_a_command_can_be_waited_for(ksql: httpx.Client) -> None:
    made = name("W")
    [answer] = run(ksql, f"CREATE STREAM {made} (V INT) WITH (kafka_topic='{made}', format='JSON', partitions=1);")
    number = answer["commandSequenceNumber"]
    assert run(ksql, "SHOW STREAMS;", commandSequenceNumber=number)[0]["@type"] == "streams"


def test_a_command_that_never_comes_is_waited_for_in_vain(ksql: httpx.Client, server: RestServer) -> None:
    status, error = refused(ksql, "SHOW STREAMS;", commandSequenceNumber=1_000_000)
    assert (status, error["error_code"]) == (503, 50301)
    assert "1000000" in error["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "Invalid JSON in request"),
        (b"{", "Invalid JSON in request"),
        (b"[]", "Invalid JSON in request"),
        (b"{}", '"ksql" must be a text'),
        (b'{"ksql": "SHOW STREAMS;", "commandSequenceNumber": "x"}', "whole number"),
        (b'{"ksql": "SHOW STREAMS;", "streamsProperties": {"ksql.service.id": "x"}}', "prohibited"),
        (b'{"ksql": "SHOW STREAMS;", "sessionVariables": 5}', "sessionVariables"),
    ],
)
def test_requests_that_make_no_sense(ksql: httpx.Client, body: bytes, message: str) -> None:
    answer = ksql.post("/ksql", content=body)
    assert (answer.status_code, answer.json()["error_code"]) == (400, 40000)
    assert message in answer.json()["message"]


def test_unknown_members_are_ignored(ksql: httpx.Client) -> None:
    assert run(ksql, "SHOW STREAMS;", requestProperties={}, somethingElse=1)[0]["@type"] == "streams"


def test_a_query_tells_what_it_connects_and_how_it_does(ksql: httpx.Client) -> None:
    source = stream(ksql)
    sink = name("copy")
    run(ksql, f"CREATE STREAM {sink} AS SELECT * FROM {source};")
    (query,) = ksql.get("/progress").json()["pipelines"]
    graph = ksql.get(f"/topology/{query['pipeline']}").json()
    topics = [node["name"] for node in graph["nodes"] if node["kind"] == "topic"]
    assert sink.upper() in [topic.upper() for topic in topics]
    assert all(node["pipeline"] == query["pipeline"] for node in graph["nodes"] if node["kind"] == "operator")
    assert graph == ksql.get("/topology").json()
    assert ksql.get("/topology", headers={"accept": "text/vnd.mermaid"}).text.startswith("flowchart TD")
    wait_until(lambda: "metrics" in ksql.get(f"/progress/{query['pipeline']}").json())
    progress = ksql.get(f"/progress/{query['pipeline']}").json()
    assert (progress["kind"], progress["state"], progress["last_error"]) == ("query", "RUNNING", None)
    assert "definition" not in progress  # settings may be secret
    assert ksql.get("/progress/not-there").status_code == 404
