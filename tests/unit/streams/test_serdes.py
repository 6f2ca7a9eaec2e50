"""Serdes in a topology: headers reach those that look at them, and a wrong type names topic, part and type."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.pipeline.cores.failures import DeserializationError, SerializationError
from moldau.streams import (
    BytesSerde,
    Consumed,
    LongSerde,
    Materialized,
    Produced,
    Repartitioned,
    SerdeError,
    StreamsBuilder,
    StringSerde,
    Topology,
    TopologyError,
    TopologyTestDriver,
)

TEXT, NUMBER, RAW = StringSerde(), LongSerde(), BytesSerde()
TAGGED = (("tag", b"7"),)


class Tagged:
    """Text that carries the record's tag, as a serde with a signature or an id in the headers would."""

    def serialize(self, topic: str, value: str, headers: Any = None) -> bytes:
        return f"{value}/{topic} {_tag(headers)}".encode()

    def deserialize(self, topic: str, data: bytes, headers: Any = None) -> str:
        return f"{data.decode()}<{topic} {_tag(headers)}"


class Plain:
    """A serde as they were before headers: two arguments."""

    def serialize(self, topic: str, value: str) -> bytes:
        return value.upper().encode()

    def deserialize(self, topic: str, data: bytes) -> str:
        return data.decode().lower()


def _tag(headers: Any) -> str:
    return dict(headers or (("tag", b"none"),))["tag"].decode()


def copied(serde: Any, results: Any, target: str = "out") -> Topology:
    builder = StreamsBuilder()
    builder.stream("in", Consumed.with_(TEXT, serde)).to(target, Produced.with_(TEXT, results))
    return builder.build()


def test_headers_reach_the_serdes_of_topics() -> None:
    with TopologyTestDriver(copied(Tagged(), Tagged())) as driver:
        driver.create_input_topic("in", TEXT, RAW).pipe_input("k", b"v", headers=TAGGED)
        record = driver.create_output_topic("out", TEXT, RAW).read_record()
    assert (record.value, record.headers) == (b"v<in 7/out 7", TAGGED)


def moved(serde: Any) -> Topology:
    builder = StreamsBuilder()
    repartitioned = Repartitioned.as_("moved").with_key_serde(TEXT).with_value_serde(serde)
    builder.stream("in", Consumed.with_(TEXT, TEXT)).repartition(repartitioned).to("out", Produced.with_(TEXT, TEXT))
    return builder.build()


@pytest.mark.parametrize(
    ("serde", "value"),
    [(Tagged(), "v/app-moved-repartition 7<app-moved-repartition 7"), (Plain(), "v")],
    ids=["with headers", "without"],
)
def test_internal_topics_carry_headers_too(serde: Any, value: str) -> None:
    with TopologyTestDriver(moved(serde), {"application.id": "app"}) as driver:
        driver.create_input_topic("in", TEXT, TEXT).pipe_input("k", "v", headers=TAGGED)
        assert driver.create_output_topic("out", TEXT, TEXT).read_value() == value


class Demanding:
    """Takes headers, and does without a default for them."""

    def serialize(self, topic: str, value: str, headers: Any) -> bytes:
        return f"{value}{len(headers)}".encode()

    def deserialize(self, topic: str, data: bytes, headers: Any) -> str:
        return data.decode()[:-1]


def test_stores_have_no_headers() -> None:
    builder = StreamsBuilder()
    serde: Any = Demanding()
    builder.table("in", Consumed.with_(TEXT, TEXT), Materialized.as_("kept").with_value_serde(serde))
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in", TEXT, TEXT).pipe_input("k", "v", headers=TAGGED)
        assert driver.get_key_value_store("kept").get("k") == "v"


def test_a_serde_without_headers_is_called_without_them() -> None:
    with TopologyTestDriver(copied(Plain(), Plain())) as driver:
        driver.create_input_topic("in", TEXT, Plain()).pipe_input("k", "v", headers=TAGGED)  # type: ignore[arg-type]
        assert driver.create_output_topic("out", TEXT, RAW).read_value() == b"V"


def test_a_result_of_the_wrong_type_names_topic_part_and_type() -> None:
    with (
        TopologyTestDriver(copied(TEXT, NUMBER, "totals")) as driver,
        pytest.raises(
            SerializationError,
            match=r"the value 'v' \(str\) .* cannot be written to topic totals: .*is not a long \(int\)",
        ),
    ):
        driver.create_input_topic("in", TEXT, TEXT).pipe_input("k", "v")


def test_bytes_of_another_type_name_topic_and_part() -> None:
    with (
        TopologyTestDriver(copied(NUMBER, NUMBER)) as driver,
        pytest.raises(
            DeserializationError, match=r"topic in, .*the value b'v' cannot be read: Size of data received by Long"
        ),
    ):
        driver.create_input_topic("in", TEXT, TEXT).pipe_input("k", "v")


def test_the_test_driver_names_the_topic_and_the_part_too() -> None:
    with TopologyTestDriver(copied(TEXT, TEXT)) as driver:
        with pytest.raises(SerdeError, match=r"Topic in: the key cannot be serialized: 5 \(int\) is not text \(str\)"):
            driver.create_input_topic("in", TEXT, TEXT).pipe_input(5, "v")
        driver.create_input_topic("in", TEXT, TEXT).pipe_input("k", "v")
        with pytest.raises(SerdeError, match=r"Topic out: the value cannot be deserialized: Size of data"):
            driver.create_output_topic("out", TEXT, NUMBER).read_value()


def test_settings_name_windowed_and_list_serdes() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    config = {
        "default.key.serde": "org.apache.kafka.streams.kstream.WindowedSerdes$SessionWindowedSerde",
        "windowed.inner.class.serde": "org.apache.kafka.common.serialization.Serdes$LongSerde",
        "default.value.serde": "org.apache.kafka.common.serialization.Serdes$ListSerde",
        "default.list.value.serde.inner": "org.apache.kafka.common.serialization.Serdes$StringSerde",
    }
    data = NUMBER.serialize("", 5) + bytes(16), b"\x01" + bytes(4)
    with TopologyTestDriver(builder.build(), config) as driver:
        driver.create_input_topic("in", RAW, RAW).pipe_input(*data)
        assert driver.create_output_topic("out", RAW, RAW).read_key_value() == data
        with pytest.raises(
            DeserializationError, match=r"the key .* cannot be read: a session's key ends with 16 bytes"
        ):
            driver.create_input_topic("in", RAW, RAW).pipe_input(b"k", None)


def test_a_serde_of_the_old_toolkit_is_refused_where_it_is_given() -> None:
    class Old:
        def serialize(self, data: str, context: Any) -> bytes:
            return data.encode()

        def deserialize(self, data: bytes, context: Any) -> str:
            return data.decode()

    with pytest.raises(TopologyError, match=r"Old\.serialize takes \(data, context\).*test_serdes\.py:\d+"):
        copied(Old(), TEXT)
