"""What is printed for a record."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import pytest

from moldau.cli.console.formatter import formatter_for
from moldau.cli.console.moldau_command import json_line
from moldau.cli.console.serdes import deserializer_named, render_double
from moldau.cli.tool import ToolError

STREAMS = "org.apache.kafka.streams.kstream"


@dataclass
class FakeMessage:
    key_bytes: bytes | None = b"k"
    value_bytes: bytes | None = b"v"
    header_pairs: list[tuple[str, bytes | None]] = field(default_factory=list)
    stamp: tuple[int, int] = (1, 1690000000000)
    epoch: int | None = 0

    def key(self) -> bytes | None:
        return self.key_bytes

    def value(self) -> bytes | None:
        return self.value_bytes

    def headers(self) -> list[tuple[str, bytes | None]]:
        return self.header_pairs

    def timestamp(self) -> tuple[int, int]:
        return self.stamp

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 5

    def leader_epoch(self) -> int | None:
        return self.epoch

    def topic(self) -> str:
        return "t"


def render(message: FakeMessage, **properties: str) -> bytes:
    return formatter_for(None, {key.replace("_", "."): value for key, value in properties.items()})(message)


def test_only_the_value_is_shown_by_default() -> None:
    assert render(FakeMessage()) == b"v\n"
    assert render(FakeMessage(value_bytes=None)) == b"null\n"


def test_everything_in_kafkas_order() -> None:
    names = ("key", "timestamp", "partition", "offset", "epoch", "headers")
    shown = {f"print_{name}": "true" for name in names}
    message = FakeMessage(header_pairs=[("a", b"1"), ("b", None)])
    assert render(message, **shown) == b"CreateTime:1690000000000\tPartition:0\tOffset:5\tEpoch:0\ta:1,b:null\tk\tv\n"
    assert b"NO_HEADERS" in render(FakeMessage(), print_headers="true")
    assert render(FakeMessage(stamp=(2, 7)), print_timestamp="true") == b"LogAppendTime:7\tv\n"
    assert render(FakeMessage(stamp=(0, -1)), print_timestamp="true") == b"NO_TIMESTAMP\tv\n"


def test_separators_and_the_word_for_null_can_be_chosen() -> None:
    message = FakeMessage(key_bytes=None)
    assert render(message, print_key="true", key_separator=",") == b"null,v\n"
    assert render(message, print_key="true", null_literal="-", line_separator="|") == b"-\tv|"
    assert render(message, print_value="false") == b""


def test_keys_and_values_have_deserializers() -> None:
    message = FakeMessage(key_bytes=struct.pack(">i", 7), value_bytes=struct.pack(">q", -3))
    long_name = "org.apache.kafka.common.serialization.LongDeserializer"
    assert render(message, print_key="true", key_deserializer="Integer", value_deserializer=long_name) == b"7\t-3\n"


@pytest.mark.parametrize(
    ("key", "properties", "text"),
    [
        (
            b"page" + struct.pack(">q", 60_000),
            {"key.deserializer": f"{STREAMS}.TimeWindowedDeserializer", "key.deserializer.window.size.ms": "10000"},
            b"[page@60000/70000]\tv\n",
        ),
        (
            struct.pack(">qqq", 7, 90, 50),
            {
                "key.deserializer": f"{STREAMS}.SessionWindowedDeserializer",
                "key.deserializer.windowed.inner.class.serde": "org.apache.kafka.common.serialization.Serdes$LongSerde",
            },
            b"[7@50/90]\tv\n",
        ),
    ],
)
def test_keys_with_windows_are_shown_as_kafka_streams_prints_them(
    key: bytes, properties: dict[str, str], text: bytes
) -> None:
    assert formatter_for(None, {"print.key": "true", **properties})(FakeMessage(key_bytes=key)) == text


def test_the_size_of_windows_must_be_told() -> None:
    with pytest.raises(ToolError, match=r"needs the size .* --property key.deserializer.window.size.ms=60000"):
        deserializer_named(f"{STREAMS}.TimeWindowedDeserializer", {}, "key")


def test_a_key_that_is_too_short_for_a_window_is_an_error() -> None:
    with pytest.raises(ValueError, match="ends with 8 bytes of time, but has only 1 in all"):
        render(FakeMessage(), print_key="true", key_deserializer="TimeWindowed", key_deserializer_window_size_ms="1")


def test_bytes_of_the_wrong_size_are_an_error() -> None:
    with pytest.raises(ValueError, match="Size of data received by IntegerDeserializer is not 4"):
        render(FakeMessage(), value_deserializer="Integer")


def test_unknown_classes_are_refused_by_name() -> None:
    with pytest.raises(ToolError, match=r"com\.acme\.Reader"):
        deserializer_named("com.acme.Reader")
    with pytest.raises(ToolError, match="Fancy"):
        formatter_for("com.acme.Fancy", {})


@pytest.mark.parametrize(
    "name", ["kafka.tools.DefaultMessageFormatter", "kafka.tools.ConsoleConsumer$NoOpMessageFormatter"]
)
def test_formatters_go_by_their_last_name(name: str) -> None:
    assert formatter_for(name, {})(FakeMessage()) == (b"" if "NoOp" in name else b"v\n")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.1, "0.1"),
        (1e10, "1.0E10"),
        (12345678.5, "1.23456785E7"),
        (1e-5, "1.0E-5"),
        (0.001, "0.001"),
        (-2.5e-10, "-2.5E-10"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (0.0, "0.0"),
    ],
)
def test_doubles_look_as_in_java(value: float, text: str) -> None:
    assert render_double(value) == text
    deserialize = deserializer_named("Double")
    assert deserialize is not None
    assert deserialize(struct.pack(">d", value)) == text.encode()


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("Float", struct.pack(">f", 0.1), b"0.1"),
        ("Short", b"\x00\x05", b"5"),
        ("Boolean", b"\x01", b"true"),
        ("UUID", b"0744f91e-62de-4924-88d6-3f357b1cb789", b"0744f91e-62de-4924-88d6-3f357b1cb789"),
    ],
)
def test_the_other_deserializers(name: str, content: bytes, text: bytes) -> None:
    deserialize = deserializer_named(name)
    assert deserialize is not None
    assert deserialize(content) == text


def test_a_json_line_keeps_what_is_not_text_as_base64() -> None:
    assert b'"value": {"base64": "/w=="}' in json_line(FakeMessage(value_bytes=b"\xff"))


OFFSET_KEY = bytes.fromhex("000100066b69703834380002743200000000")
OFFSET = bytes.fromhex("000400000000000000070000000001000001a1e08c5f80010010d3dc6586c4b04897a1b0fdc62ab4ec4a")
SHOWN_KEY = b'{"key":{"type":1,"data":{"group":"kip848","topic":"t2","partition":0}},"value":'


@pytest.mark.parametrize(
    "class_name",
    [
        "org.apache.kafka.tools.consumer.OffsetsMessageFormatter",
        "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
    ],
)
def test_offsets_are_lines_of_json_by_the_new_name_and_the_old(class_name: str) -> None:
    render = formatter_for(class_name, {})
    assert render(FakeMessage(OFFSET_KEY, OFFSET)) == (
        SHOWN_KEY + b'{"version":4,"data":{"offset":7,"leaderEpoch":0,"metadata":"","commitTimestamp":1794768658304,'
        b'"topicId":"09xlhsSwSJehsP3GKrTsSg"}}}\n'
    )
    assert render(FakeMessage(OFFSET_KEY, None)) == SHOWN_KEY + b"null}\n"
    future = b"\x00\x63" + OFFSET[2:]
    assert render(FakeMessage(OFFSET_KEY, future)) == SHOWN_KEY + b'{"version":99,"data":"unknown"}}\n'


def test_each_coordinator_formatter_shows_its_own_kind_of_record() -> None:
    groups = formatter_for("org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter", {})
    assert groups(FakeMessage(OFFSET_KEY, OFFSET)) == groups(FakeMessage(None, OFFSET)) == b""
    assert groups(FakeMessage(bytes.fromhex("000200046c697665"), None)) == (
        b'{"key":{"type":2,"data":{"group":"live"}},"value":null}\n'
    )
    transactions = formatter_for("kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter", {})
    assert transactions(FakeMessage(bytes.fromhex("0000000474782d31"), None)) == (
        b'{"key":{"type":0,"data":{"transactionalId":"tx-1"}},"value":null}\n'
    )
