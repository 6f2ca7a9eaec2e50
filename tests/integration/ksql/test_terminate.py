"""POST /ksql/terminate: the end of a cluster of servers."""

from __future__ import annotations

from pathlib import Path

import httpx
from tests.integration.ksql.talk import filled_stream, name, refused, run
from tests.ksql_cases.rest_runner import RestServer, RestWorld

from moldau.client.admin import Admin
from moldau.testing import Broker


def test_all_queries_end_and_nothing_is_accepted_any_more(
    moldau_broker: Broker, world: RestWorld, tmp_path: Path
) -> None:
    server = RestServer(moldau_broker.bootstrap_servers, tmp_path, world.send)
    try:
        with httpx.Client(base_url=server.url, timeout=30) as ksql:
            source, gone, kept = filled_stream(ksql), name("GONE"), name("KEPT")
            for sink in (gone, kept):
                run(ksql, f"CREATE STREAM {sink} AS SELECT * FROM {source};")
            assert ksql.post("/ksql/terminate", json={"deleteTopicList": ["("]}).status_code == 400
            [answer] = ksql.post("/ksql/terminate", json={"deleteTopicList": ["GONE.*", source]}).json()
            assert (answer["@type"], answer["statementText"]) == ("currentStatus", "TERMINATE CLUSTER;")
            status, error = refused(ksql, "SHOW STREAMS;")
            assert (status, error["error_code"]) == (503, 50303)
        topics = Admin(moldau_broker.bootstrap_servers, {}, timeout_ms=10_000).topic_names()
        assert {source, kept} <= set(topics)
        assert gone not in topics
        assert server.settings.command_topic not in topics
    finally:
        server.close()
