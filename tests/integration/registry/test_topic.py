"""The topic `_schemas`: what other registries wrote is understood, what we write has their form, and it must be fit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.registry.calls import Http

from moldau.core.errors import StartupError
from moldau.registry.instance import RegistryInstance
from moldau.registry.settings import RegistrySettings
from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry

# As a registry of Confluent's writes them: version 5.5 (null subjects, no schemaType) and 8.x mixed.
FOREIGN = [
    (b'{"keytype":"NOOP","magic":0}', None),
    (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}'),
    (
        b'{"keytype":"SCHEMA","subject":"old-value","version":1,"magic":1}',
        b'{"subject":"old-value","version":1,"id":1,"schema":"\\"string\\"","deleted":false}',
    ),
    (
        b'{"keytype":"SCHEMA","subject":"old-value","version":2,"magic":1}',
        b'{"subject":"old-value","version":2,"id":2,"md5":"CV1xzxJVa51eMwrVdbPfXQ==","schemaType":"AVRO",'
        b'"schema":"{\\"type\\":\\"string\\",\\"doc\\":\\"x\\"}","deleted":false}',
    ),
    (
        b'{"keytype":"SCHEMA","subject":"gone-value","version":1,"magic":1}',
        b'{"subject":"gone-value","version":1,"id":7,"schemaType":"JSON","schema":"{\\"type\\":\\"object\\"}",'
        b'"deleted":false}',
    ),
    (b'{"keytype":"DELETE_SUBJECT","subject":"gone-value","magic":0}', b'{"subject":"gone-value","version":1}'),
    (b'{"keytype":"MODE","subject":"old-value","magic":0}', b'{"subject":"old-value","mode":"READONLY"}'),
    (b'{"keytype":"CONTEXT","tenant":"default","context":".lab","magic":0}', b'{"tenant":"default","context":".lab"}'),
    (
        b'{"keytype":"SCHEMA","subject":":.lab:s","version":1,"magic":1}',
        b'{"subject":":.lab:s","version":1,"id":1,"schemaType":"AVRO","schema":"\\"int\\"","deleted":false}',
    ),
    (b'{"keytype":"ASSOC","tenant":"default","magic":0}', b'{"whatever":true}'),
    (b"not even JSON", b"at all"),
    (
        b'{"keytype":"SCHEMA","subject":"thief","version":1,"magic":1}',
        b'{"subject":"thief","version":1,"id":1,"schemaType":"AVRO","schema":"\\"long\\"","deleted":false}',
    ),
]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"group.min.session.timeout.ms": "100"}) as broker:
        yield broker


def create_topic(broker: Broker, *, partitions: int = 1, policy: str = "compact") -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    topic = NewTopic("_schemas", partitions, 1, config={"cleanup.policy": policy})
    admin.create_topics([topic])["_schemas"].result(30)


def records(broker: Broker) -> list[tuple[bytes | None, bytes | None]]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "look", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition("_schemas", 0, 0)])
    found = []
    try:
        while (message := consumer.poll(30)) is not None and message.error() is None:
            found.append((message.key(), message.value()))
    finally:
        consumer.close()
    return found


def test_a_topic_of_other_registries_is_understood(broker: Broker) -> None:
    create_topic(broker)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for key, value in FOREIGN:
        producer.produce("_schemas", value, key)
    assert producer.flush(30) == 0
    with SchemaRegistry(broker.bootstrap_servers) as registry, Http(registry.url) as http:
        assert http.get("/config") == (200, {"compatibilityLevel": "FULL"})
        assert http.get("/subjects") == (200, [":.lab:s", "old-value"]), "a stolen id does not count"
        assert http.get("/subjects?deletedOnly=true") == (200, ["gone-value"])
        assert http.get("/schemas/ids/1")[1]["schema"] == '"string"'
        assert http.get("/schemas/ids/7")[1]["schemaType"] == "JSON"
        assert http.get("/contexts") == (200, [".", ".lab"])
        assert http.post("/subjects/old-value/versions", '"string"', version=3) == (422, 42205)
        assert http.register("new-value", '"double"')["id"] == 8


def test_our_records_have_exactly_the_form_others_read(broker: Broker) -> None:
    with SchemaRegistry(broker.bootstrap_servers) as registry, Http(registry.url) as http:
        http.register("s", '"string"')
        http.register(":.lab:s", '"int"')
        http.put("/config", {"compatibility": "full"})
        http.put("/config/s", {"compatibility": "none"})
        http.put("/mode/t", {"mode": "READONLY"})
        http.delete("/subjects/s/versions/1")
        http.delete("/subjects/:.lab:s")
        http.delete("/subjects/s?permanent=true")
    written = [record for record in records(broker) if record[0] != b'{"keytype":"NOOP","magic":0}']
    live = b'{"subject":"s","version":1,"id":1,"schemaType":"AVRO","schema":"\\"string\\"","deleted":false}'
    assert written == [
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', live),
        (
            b'{"keytype":"CONTEXT","tenant":"default","context":".lab","magic":0}',
            b'{"tenant":"default","context":".lab"}',
        ),
        (
            b'{"keytype":"SCHEMA","subject":":.lab:s","version":1,"magic":1}',
            b'{"subject":":.lab:s","version":1,"id":1,"schemaType":"AVRO","schema":"\\"int\\"","deleted":false}',
        ),
        (b'{"keytype":"CONFIG","magic":0}', b'{"compatibilityLevel":"FULL"}'),
        (b'{"keytype":"CONFIG","subject":"s","magic":0}', b'{"subject":"s","compatibilityLevel":"NONE"}'),
        (b'{"keytype":"MODE","subject":"t","magic":0}', b'{"subject":"t","mode":"READONLY"}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', live.replace(b"false", b"true")),
        (b'{"keytype":"DELETE_SUBJECT","subject":":.lab:s","magic":0}', b'{"subject":":.lab:s","version":1}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', None),
        (b'{"keytype":"CONFIG","subject":"s","magic":0}', None),
    ]


def test_a_record_that_steals_an_id_is_undone(broker: Broker) -> None:
    with SchemaRegistry(broker.bootstrap_servers) as registry, Http(registry.url) as http:
        http.register("s", '"string"')
        key = b'{"keytype":"SCHEMA","subject":"thief","version":1,"magic":1}'
        value = b'{"subject":"thief","version":1,"id":1,"schemaType":"AVRO","schema":"\\"long\\"","deleted":false}'
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("_schemas", value, key)
        assert producer.flush(30) == 0
        http.register("s2", '"int"')
        assert http.get("/subjects") == (200, ["s", "s2"])
    assert (key, None) in records(broker)


@pytest.mark.parametrize(
    ("partitions", "policy", "complaint"),
    [(2, "compact", "has 2 partitions"), (1, "delete", "cleanup.policy=delete")],
)
def test_a_topic_that_would_lose_schemas_is_refused(
    broker: Broker, partitions: int, policy: str, complaint: str
) -> None:
    create_topic(broker, partitions=partitions, policy=policy)
    with pytest.raises(StartupError, match=complaint):
        SchemaRegistry(broker.bootstrap_servers).start()


def test_a_registry_without_brokers_says_so() -> None:
    with pytest.raises(StartupError, match="no broker answered"):
        SchemaRegistry("127.0.0.1:1", {"kafkastore.init.timeout.ms": "1000"}).start()


def test_while_brokers_are_away_reads_go_on_and_writes_fail_in_time(broker: Broker) -> None:
    settings = {
        "kafkastore.timeout.ms": "500",
        "kafkagroup.session.timeout.ms": "1000",
        "kafkagroup.heartbeat.interval.ms": "100",
    }
    with (
        SchemaRegistry(broker.bootstrap_servers, settings) as registry,
        Http(registry.url) as http,
    ):
        http.register("s", '"string"')
        broker.stop()
        status, code = http.post("/subjects/s2/versions", '"int"')
        assert (status, code) in ((500, 50001), (500, 50002))
        assert http.get("/schemas/ids/1")[1]["schema"] == '"string"'
        assert http.register("s", '"string"')["id"] == 1, "what is known needs no writing"
        assert http.get("/healthz")[1]["healthy"] is True
        broker.start()
        registered = _until_accepted(http, "s3", '"long"')
        assert registered["version"] == 1
        assert json.loads(http.get(f"/schemas/ids/{registered['id']}")[1]["schema"]) == "long"
        assert http.get("/subjects")[1] in (["s", "s3"], ["s", "s2", "s3"])


def _until_accepted(http: Http, subject: str, schema: str) -> dict[str, object]:
    """Ask as clients do: again, while the registry finds its brokers."""
    for _ in range(200):
        status, answer = http.post(f"/subjects/{subject}/versions", schema)
        if status == 200:
            return dict(answer)
        assert status == 500
    raise AssertionError("the registry did not recover")


def test_a_schema_of_almost_a_megabyte_is_kept_and_one_of_five_is_refused(broker: Broker) -> None:
    with SchemaRegistry(broker.bootstrap_servers) as registry, Http(registry.url) as http:
        assert http.register("large", _record_of(1_040_000))["id"] == 1
        assert http.post("/subjects/huge/versions", _record_of(5_000_000)) == (422, 42209)
        assert http.register("next", '"string"')["id"] == 2
        registry.restart()
        assert http.get("/subjects") == (200, ["large", "next"])
        assert len(http.get("/schemas/ids/1")[1]["schema"]) > 1_000_000


def _record_of(size: int) -> str:
    """A schema of about so many bytes that is all one line of documentation."""
    return json.dumps({"type": "record", "name": "R", "doc": "x" * size, "fields": []})


def test_several_services_live_in_one_process(broker: Broker) -> None:
    def instance(name: str) -> RegistryInstance:
        properties = {
            "listeners": "http://127.0.0.1:0",
            "kafkastore.bootstrap.servers": broker.bootstrap_servers,
            "kafkastore.topic": name,
            "schema.registry.group.id": name,
        }
        return RegistryInstance(RegistrySettings.of(properties))

    def ask(url: str) -> object:
        with Http(url) as http:
            return http.register("s", '"string"')["id"], http.get("/subjects")

    async def story() -> list[object]:
        services = [instance("_one"), instance("_two")]
        try:
            for service in services:
                await service.start()
            return [await asyncio.to_thread(ask, service.url) for service in services]
        finally:
            for service in services:
                await service.stop()

    assert asyncio.run(story()) == [(1, (200, ["s"]))] * 2
