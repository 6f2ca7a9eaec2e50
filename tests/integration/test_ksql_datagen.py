"""`ksql-datagen` writes records that a broker holds and a consumer reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moldau.cli.ksql.datagen.command import main
from moldau.client.consumer import Consumer
from moldau.serdes.plain import BYTES
from moldau.testing import Broker, SchemaRegistry


def read(broker: Broker, topic: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    properties = {"group.id": "test", "auto.offset.reset": "earliest"}
    found: list[tuple[bytes | None, bytes | None]] = []
    with Consumer[bytes, bytes](
        broker.bootstrap_servers, properties=properties, key_deserializer=BYTES, value_deserializer=BYTES
    ) as consumer:
        consumer.subscribe([topic])
        while len(found) < count:
            found += [(one.key, one.value) for one in consumer.poll_batch(timeout_s=5.0)]
    return found


def test_orders_are_written_as_json(moldau_broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(
        [
            "quickstart=orders",
            "topic=orders",
            "iterations=3",
            "maxInterval=1",
            f"bootstrap-server={moldau_broker.bootstrap_servers}",
        ]
    )

    assert code == 0
    assert capsys.readouterr().out.count(" --> ([ ") == 3
    records = sorted(read(moldau_broker, "orders", 3))
    assert [key for key, _ in records] == [number.to_bytes(4, "big") for number in range(3)]
    first = json.loads(records[0][1] or b"")
    assert list(first) == ["ordertime", "orderid", "itemid", "orderunits", "address"]
    assert list(first["address"]) == ["city", "state", "zipcode"]


def test_rows_of_a_schema_file_are_written_as_avro(moldau_broker: Broker, tmp_path: Path) -> None:
    schema = tmp_path / "thing.avro"
    fields = [{"name": "id", "type": "string"}, {"name": "size", "type": "int"}]
    schema.write_text(json.dumps({"type": "record", "name": "thing", "fields": fields}))
    with SchemaRegistry(moldau_broker.bootstrap_servers) as registry:
        code = main(
            [
                f"schema={schema}",
                "key=id",
                "format=avro",
                "iterations=2",
                "msgRate=1000",
                "printRows=false",
                f"bootstrap-server={moldau_broker.bootstrap_servers}",
                f"schemaRegistryUrl={registry.url}",
            ]
        )

    assert code == 0
    assert {value[:1] for _, value in read(moldau_broker, "thing_kafka_topic_avro", 2) if value} == {b"\0"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["quickstart=nothing"], "there is no quickstart 'nothing'"),
        (["quickstart=users", "schema=x"], "one of the two"),
        (["schema=/no/such/file", "key=x"], "cannot read /no/such/file"),
        (["quickstart=users", "key=x"], "key= must name a field: registertime, userid"),
        (["quickstart=users", "iterations=many"], "iterations must be a whole number"),
        (["quickstart=users", "format=xml"], "Unknown format: XML"),
        (["users"], "'users' is not understood"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    assert message in capsys.readouterr().err
