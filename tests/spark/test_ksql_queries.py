"""Queries of SQL on real Spark, over a broker: planned as pipelines, started as any other."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition
from tests.ksql_cases.case_registry import CaseRegistry
from tests.unit.pipeline.runtime.identities import identity_in

from moldau.formats.registry.topic_schemas import TopicSchemas
from moldau.pipeline.cores.sql.functions.builtin import BUILTIN
from moldau.pipeline.cores.sql.functions.libraries import load_functions
from moldau.pipeline.cores.sql.functions.registry import FunctionRegistry
from moldau.pipeline.ksql.execution.engine import Engine as SqlEngine
from moldau.pipeline.ksql.execution.engine import PersistentQuery
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.identity import PipelineOptions
from moldau.pipeline.runtime.kafka.clients import KafkaClients
from moldau.pipeline.runtime.kafka.wiring import kafka_pipeline
from moldau.pipeline.runtime.states import State
from moldau.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAIT_S = 60
EVERY_CHANGE = PipelineOptions(
    is_exactly_once=True,
    task_settings={"statestore.cache.max.bytes": 0, "deserialization.exception.handler": "log-and-continue"},
)


class BrokerTopics:
    """The topics of a broker, as statements see them."""

    def __init__(self, clients: KafkaClients) -> None:
        self._admin = clients.new_admin()
        self._counts: dict[str, int] = {}

    def partitions(self, topic: str) -> int | None:
        return self._counts.get(topic)

    def create(self, topic: str, partitions: int, replicas: int, settings: Mapping[str, str]) -> None:
        self._admin.create_topic(topic, partitions=partitions, configs=dict(settings))
        self._counts[topic] = partitions

    def delete(self, topic: str) -> None:
        raise NotImplementedError


def queries_of(clients: KafkaClients, *statements: str, functions: FunctionRegistry = BUILTIN) -> list[PersistentQuery]:
    """Carry out statements; the queries that they start."""
    engine = SqlEngine(BrokerTopics(clients), TopicSchemas(CaseRegistry()), functions=functions)
    outcomes = [engine.execute(statement) for text in statements for statement in parse(text)]
    return [outcome.started for outcome in outcomes if outcome.started is not None]


def produce(broker: Broker, topic: str, *records: tuple[str, dict[str, Any]]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for key, value in records:
        producer.produce(topic, json.dumps(value), key)
    assert producer.flush(WAIT_S) == 0


def consumed(broker: Broker, topic: str, count: int) -> list[tuple[str, Any]]:
    """Wait for so many committed records of one partition, in order."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "enable.auto.commit": False}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Any] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < count and time.monotonic() < deadline:
        found += [one for one in consumer.consume(100, timeout=0.1) if one.error() is None]
    consumer.close()
    return [(one.key().decode(), json.loads(one.value())) for one in found]


OWN_FUNCTIONS = """
from moldau.ksql.functions import udaf, udf, udtf
from ._shared import MARK

@udf
def shout(text: str) -> str:
    return text.upper() + MARK

@udtf
def letters(text: str) -> list[str]:
    return list(text)

@udaf
class Longest:
    def initial(self) -> str | None:
        return None

    def add(self, state: str | None, text: str) -> str | None:
        return text if state is None or len(text) > len(state) else state

    def merge(self, one: str | None, other: str | None) -> str | None:
        return one if other is None else self.add(one, other)
"""


def test_queries_and_functions_of_users_run_on_spark(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    clients = KafkaClients(bootstrap_servers=broker.bootstrap_servers)
    extensions = tmp_path / "ext"
    extensions.mkdir()
    (extensions / "own.py").write_text(OWN_FUNCTIONS)
    (extensions / "_shared.py").write_text("MARK = '!'")
    queries = queries_of(
        clients,
        "CREATE STREAM CLICKS (USER STRING KEY, PAGE STRING, MS INT)"
        " WITH (KAFKA_TOPIC='clicks', VALUE_FORMAT='JSON', PARTITIONS=1);",
        "CREATE STREAM SLOW AS SELECT USER, UCASE(PAGE) AS PAGE, MS / 1000 AS WAIT_S FROM CLICKS WHERE MS > 1000;",
        "CREATE TABLE VISITS AS SELECT PAGE, COUNT(*) AS TIMES, MAX(MS) AS LONGEST FROM CLICKS GROUP BY PAGE;",
        "CREATE STREAM LOUD AS SELECT USER, SHOUT(PAGE) AS PAGE, LETTERS(USER) AS LETTER FROM CLICKS WHERE MS > 2500;",
        "CREATE TABLE NAMES AS SELECT PAGE, LONGEST(SHOUT(USER)) AS NAME FROM CLICKS GROUP BY PAGE;",
        functions=load_functions(extensions),
    )
    for file in extensions.iterdir():
        file.unlink()  # the functions travel with the plans
    engine = Engine(spark=spark)
    pipelines = [
        kafka_pipeline(
            query.topology, identity_in(tmp_path / query.query_id, query.query_id), clients, EVERY_CHANGE, engine
        )
        for query in queries
    ]
    produce(
        broker,
        "clicks",
        ("ann", {"PAGE": "home", "MS": 500}),
        ("bob", {"PAGE": "cart", "MS": 2500}),
        ("ann", {"PAGE": "home", "MS": 4000}),
        ("eve", {"PAGE": None, "MS": 1}),
    )
    try:
        for pipeline in pipelines:
            pipeline.start()
            pipeline.states.wait_for(lambda state: state is State.RUNNING or state.is_final, WAIT_S)
            assert pipeline.failure is None, pipeline.failure
        assert consumed(broker, "SLOW", 2) == [
            ("bob", {"PAGE": "CART", "WAIT_S": 2}),
            ("ann", {"PAGE": "HOME", "WAIT_S": 4}),
        ]
        assert consumed(broker, "VISITS", 3) == [
            ("home", {"TIMES": 1, "LONGEST": 500}),
            ("cart", {"TIMES": 1, "LONGEST": 2500}),
            ("home", {"TIMES": 2, "LONGEST": 4000}),
        ]
        assert consumed(broker, "LOUD", 3) == [("ann", {"PAGE": "HOME!", "LETTER": letter}) for letter in "ann"]
        assert consumed(broker, "NAMES", 3) == [
            ("home", {"NAME": "ANN!"}),
            ("cart", {"NAME": "BOB!"}),
            ("home", {"NAME": "ANN!"}),
        ]
    finally:
        stopped = [pipeline.stop(WAIT_S) for pipeline in pipelines]
    assert all(stopped)
