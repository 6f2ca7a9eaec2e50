"""The statements that trainings type into ksql, on Spark: what is printed runs, or is refused with how to write it.

What a training leaves out (`…` in a column list, the definition of a source) is filled in here.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from confluent_kafka import Producer
from tests.integration.server_process import wait_until

from moldau.ksql.api.errors import StatementError
from moldau.ksql.api.requests import QueryRequest, StatementRequest
from moldau.ksql.api.results import ResultRow, RowStream
from moldau.ksql.pipelines import KIND, KsqlBuilder
from moldau.ksql.server import KsqlServer
from moldau.ksql.settings import KsqlSettings
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.hosting.host import PipelineHost
from moldau.pipeline.runtime.hosting.local_link import LocalLink
from moldau.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 240.0
HOUR = 1_613_988_000_000  # 2021-02-22 10:00 in London
T = TypeVar("T")

SOURCES = """
CREATE STREAM clickstream (userid VARCHAR KEY, page VARCHAR, action VARCHAR)
  WITH (KAFKA_TOPIC = 'clicks', PARTITIONS = 1, VALUE_FORMAT = 'JSON');
CREATE TABLE users (user_id VARCHAR PRIMARY KEY, level VARCHAR)
  WITH (KAFKA_TOPIC = 'users', PARTITIONS = 1, VALUE_FORMAT = 'JSON');
CREATE STREAM ind_trans_stream (acct_id INT KEY, amount DOUBLE, details VARCHAR)
  WITH (VALUE_FORMAT = 'JSON', KAFKA_TOPIC = 'transactions_topic', PARTITIONS = 1);
CREATE STREAM monitoring_stream (error_code INT, type VARCHAR)
  WITH (KAFKA_TOPIC = 'monitoring', PARTITIONS = 1, VALUE_FORMAT = 'JSON');
CREATE STREAM RATINGS (RATING_ID INT, USER_ID INT, CHANNEL VARCHAR, STARS INT, MESSAGE VARCHAR)
  WITH (KAFKA_TOPIC = 'ratings', PARTITIONS = 1, VALUE_FORMAT = 'JSON');
CREATE TABLE CUSTOMERS (ID INT PRIMARY KEY, CLUB_STATUS VARCHAR, EMAIL VARCHAR, FIRST_NAME VARCHAR, LAST_NAME VARCHAR)
  WITH (KAFKA_TOPIC = 'customers', PARTITIONS = 1, VALUE_FORMAT = 'JSON');
CREATE STREAM NETWORK_TRAFFIC_NESTED
( timestamp BIGINT,
  layers STRUCT<
    frame STRUCT<frame_frame_time VARCHAR, frame_frame_protocols VARCHAR>,
    ip STRUCT<ip_ip_src VARCHAR, ip_ip_dst VARCHAR>,
    tcp STRUCT<tcp_flags_ack VARCHAR, tcp_flags_reset VARCHAR>>
) WITH (KAFKA_TOPIC = 'network', PARTITIONS = 1, VALUE_FORMAT = 'JSON', TIMESTAMP = 'timestamp');
CREATE STREAM ORDERS (ORDERID INT KEY, MAKE VARCHAR, VALUE DOUBLE)
  WITH (KAFKA_TOPIC = 'orders', PARTITIONS = 1, VALUE_FORMAT = 'JSON');
"""

QUERIES = """
CREATE STREAM vip_actions AS
    SELECT userid, page, action
    FROM clickstream c
    LEFT JOIN users u ON c.userid = u.user_id
    WHERE u.level = 'Platinum';
CREATE STREAM big_transaction_amounts AS
SELECT acct_id, amount
FROM ind_trans_stream
WHERE amount > 100;
CREATE TABLE trans_by_acct_tally AS
SELECT acct_id, count(*)
FROM ind_trans_stream
WHERE amount > 100
GROUP BY acct_id;
CREATE TABLE error_counts AS
SELECT error_code, count(*) FROM monitoring_stream
WINDOW TUMBLING (SIZE 1 MINUTE)
WHERE type = 'ERROR'
GROUP BY error_code;
CREATE STREAM RATINGS_WITH_CUSTOMER_DATA WITH (PARTITIONS=1) AS \\
SELECT R.RATING_ID, R.CHANNEL, R.STARS, R.MESSAGE, \\
    C.ID, C.CLUB_STATUS, C.EMAIL, \\
    C.FIRST_NAME, C.LAST_NAME \\
FROM RATINGS R \\
    INNER JOIN CUSTOMERS C \\
    ON R.USER_ID = C.ID;
CREATE STREAM NETWORK_TRAFFIC_FLAT
AS SELECT
    timestamp,
    layers→frame→frame_frame_protocols as frame_protocols,
    layers→ip→ip_ip_src as ip_source,
    layers→ip→ip_ip_dst as ip_dest,
    layers→tcp→tcp_flags_ack as tcp_flags_ack,
    layers→tcp→tcp_flags_reset as tcp_flags_reset
FROM NETWORK_TRAFFIC_NESTED;
CREATE TABLE potential_slowloris_attacks
AS SELECT ip_dest, count(*) as count_connection_reset
FROM NETWORK_TRAFFIC_FLAT
WINDOW TUMBLING (SIZE 60 SECONDS)
WHERE tcp_flags_ack = '1' AND tcp_flags_reset = '1'
GROUP BY ip_dest
HAVING count(*) > 100;
CREATE TABLE ORDERS_PER_HOUR_BY_MAKE AS
SELECT MAKE, COUNT(*) AS ORDER_COUNT, SUM(VALUE) AS TOTAL_ORDER_VALUE
FROM ORDERS
WINDOW TUMBLING (SIZE 1 HOUR)
GROUP BY MAKE;
"""

PULL = """
SELECT TIMESTAMPTOSTRING(WINDOWSTART,'yyyy-MM-dd HH:mm:ss','Europe/London') AS WINDOW_START,
       TIMESTAMPTOSTRING(WINDOWEND,'HH:mm:ss','Europe/London') AS WINDOW_END,
       MAKE,
       ORDER_COUNT,
       TOTAL_ORDER_VALUE
  FROM ORDERS_PER_HOUR_BY_MAKE
 WHERE MAKE = 'Funk Inc';
"""


class Server:
    """A ksql server in this process, whose queries run on the session's Spark."""

    def __init__(self, servers: str, folder: Path, spark: SparkSession) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        settings = KsqlSettings.of({"bootstrap.servers": servers, "ksql.streams.state.dir": str(folder)})
        self._server = self._run(self._start(settings, spark))

    async def _start(self, settings: KsqlSettings, spark: SparkSession) -> KsqlServer:
        server = KsqlServer(settings, LocalLink(PipelineHost({KIND: KsqlBuilder(Engine(spark=spark))})))
        await server.start()
        return server

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def statements(self, text: str) -> list[dict[str, Any]]:
        request = StatementRequest(text=text, properties={"auto.offset.reset": "earliest"})
        return self._run(self._server.run_statements(request))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        async def collect() -> list[tuple[Any, ...]]:
            stream = await self._server.open_query(QueryRequest(text=query))
            assert isinstance(stream, RowStream)
            return [row.values async for row in stream.rows if isinstance(row, ResultRow)]

        return sorted(self._run(collect()), key=repr)

    def close(self) -> None:
        self._run(self._server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def ksql(broker: Broker, tmp_path: Path, spark: SparkSession) -> Iterator[Server]:
    server = Server(broker.bootstrap_servers, tmp_path, spark)
    server.statements(SOURCES)
    yield server
    server.close()


def write(broker: Broker, topic: str, *records: tuple[str | bytes | None, dict[str, Any], int]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for key, value, timestamp in records:
        producer.produce(topic, json.dumps(value), key, timestamp=timestamp)
    assert producer.flush(30) == 0


def number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def write_all(broker: Broker) -> None:
    now = HOUR
    write(broker, "users", ("ann", {"level": "Platinum"}, now), ("bob", {"level": "Gold"}, now))
    customer = {"CLUB_STATUS": "gold", "EMAIL": "a@b.c", "FIRST_NAME": "Ann", "LAST_NAME": "Lee"}
    write(broker, "customers", (number(7), customer, now))
    clicks = [("ann", {"page": "home", "action": "buy"}), ("bob", {"page": "home", "action": "look"})]
    write(broker, "clicks", *((key, value, now + 1) for key, value in clicks))
    write(broker, "transactions_topic", *((number(1), {"amount": amount}, now) for amount in (50.0, 150.0, 250.0)))
    errors = [{"error_code": 5, "type": "ERROR"}] * 3 + [{"error_code": 5, "type": "INFO"}]
    write(broker, "monitoring", *((None, error, now) for error in errors))
    rating = {"RATING_ID": 1, "USER_ID": 7, "CHANNEL": "web", "STARS": 4, "MESSAGE": "fine"}
    write(broker, "ratings", (None, rating, now + 1), (None, {**rating, "RATING_ID": 2, "USER_ID": 8}, now + 1))
    packet = {
        "timestamp": now,
        "layers": {"frame": {"frame_frame_protocols": "eth:ip"}, "ip": {"ip_ip_dst": "10.0.0.1"}},
    }
    reset = {"tcp_flags_ack": "1", "tcp_flags_reset": "1"}
    write(
        broker, "network", *((None, {**packet, "layers": {**packet["layers"], "tcp": reset}}, now) for _ in range(102))
    )
    orders = [(1, "Funk Inc", 10.5, now), (2, "Funk Inc", 2.0, now + 1), (3, "Funk Inc", 1.0, now + 3_600_000)]
    write(broker, "orders", *((number(key), {"MAKE": make, "VALUE": value}, at) for key, make, value, at in orders))


@pytest.mark.timeout(600)
def test_all_statements_run_and_give_what_they_say(broker: Broker, ksql: Server) -> None:
    write_all(broker)
    ksql.statements(QUERIES)

    def eventually(query: str, rows: list[tuple[Any, ...]]) -> None:
        wait_until(lambda: ksql.rows(query) == rows, timeout_s=PATIENCE_S, what=f"{rows} from {query}")

    eventually("SELECT * FROM vip_actions;", [("ann", "home", "buy")])
    eventually("SELECT * FROM big_transaction_amounts;", [(1, 150.0), (1, 250.0)])
    eventually("SELECT * FROM trans_by_acct_tally;", [(1, 2)])
    eventually("SELECT * FROM error_counts WHERE error_code = 5;", [(5, HOUR, HOUR + 60_000, 3)])
    eventually("SELECT RATING_ID, STARS, FIRST_NAME, EMAIL FROM RATINGS_WITH_CUSTOMER_DATA;", [(1, 4, "Ann", "a@b.c")])
    eventually("SELECT ip_dest, count_connection_reset FROM potential_slowloris_attacks;", [("10.0.0.1", 102)])
    eventually(
        PULL,
        [
            ("2021-02-22 10:00:00", "11:00:00", "Funk Inc", 2, 12.5),
            ("2021-02-22 11:00:00", "12:00:00", "Funk Inc", 1, 1.0),
        ],
    )


def test_a_count_without_groups_says_how_to_write_it(ksql: Server) -> None:
    with pytest.raises(StatementError, match=r"(?s)For example: SELECT ERROR_CODE, COUNT.* GROUP BY ERROR_CODE"):
        ksql.statements("CREATE TABLE error_counts_2 AS SELECT error_code, count(*) FROM monitoring_stream;")


def test_a_pull_query_with_groups_says_how_to_write_it(ksql: Server) -> None:
    with pytest.raises(StatementError, match="Add EMIT CHANGES if you intended to issue a push query"):
        ksql.rows("SELECT acct_id, count(*) FROM ind_trans_stream GROUP BY acct_id;")
