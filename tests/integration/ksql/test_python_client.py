"""A client that others wrote for ksqlDB: statements, a pull query and a push query over HTTP/2, and inserts."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import httpx
import pytest
from ksqldb import KSQLdbClient
from tests.integration.ksql.talk import EARLIEST, name
from tests.ksql_cases.rest_runner import RestServer


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_session_of_the_client(ksql: httpx.Client, server: RestServer) -> None:
    client, made = KSQLdbClient(server.url), name("S")
    options = f"kafka_topic='{made}', format='JSON', partitions=1"
    [created] = client.ksql(f"CREATE STREAM {made} (ID INT KEY, V STRING) WITH ({options});")
    assert created["commandStatus"]["status"] == "SUCCESS"
    acknowledged = client.inserts_stream(made, [{"ID": 1, "V": "a"}, {"ID": 2, "V": "b"}])
    assert acknowledged == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]
    head, *rows = client.query_sync(f"SELECT * FROM {made};")
    assert head["columnNames"] == ["ID", "V"]
    assert rows == [[1, "a"], [2, "b"]]

    async def pushed() -> list[Any]:
        text = f"SELECT V FROM {made} EMIT CHANGES LIMIT 2;"
        return [one async for one in client.query_async(text, stream_properties=EARLIEST)]

    assert asyncio.run(pushed())[1:] == [["a"], ["b"]]
    assert any(one["name"] == "ksql.service.id" for one in client.get_properties())
    assert not client.close_query("no-such-query")
    gc.collect()  # the client leaves its connections to the collector, which warns in whatever test it runs
