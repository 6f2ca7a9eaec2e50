"""kafka-console-producer's options, and the client properties made from them."""

from __future__ import annotations

from moldau.cli.cluster_options import BROKERS, PRODUCER_CONFIG, pairs
from moldau.cli.options import Option, Parsed, Parser
from moldau.client.connection import load_properties

__all__ = ["PARSER", "producer_properties", "reader_properties"]

INTERACTIVE_LINGER_MS = 5

PARSER = Parser(
    "Send each line of standard input to a topic as one record.",
    [
        BROKERS,
        Option("topic", "The topic to send to.", "topic", is_required=True),
        Option("sync", "Wait for each record's acknowledgement before sending the next."),
        Option(
            "compression-codec",
            "Compress batches: none, gzip, snappy, lz4 or zstd. Without a value gzip.",
            "codec",
            bare_value="gzip",
            aliases=("compression",),
        ),
        Option("batch-size", "The most bytes of one batch.", "bytes", int, 16384),
        Option("max-partition-memory-bytes", "The same as --batch-size, which wins.", "bytes", int, 16384),
        Option("message-send-max-retries", "How often a failed send is tried again.", "number", int, 3),
        Option("retry-backoff-ms", "How long to wait before a retry.", "ms", int, 100),
        Option("timeout", "How long a record may wait for its batch to fill; 5 at a terminal.", "ms", int, 1000),
        Option("request-required-acks", "Acknowledgements to wait for: 0, 1 or -1 for all.", "acks", str, "-1"),
        Option("request-timeout-ms", "How long the broker may take to answer.", "ms", int, 1500),
        Option("metadata-expiry-ms", "How often metadata is refreshed without a reason.", "ms", int, 300000),
        Option("max-block-ms", "How long sending may wait for room in the buffer.", "ms", int, 60000),
        Option("max-memory-bytes", "Memory for records on their way.", "bytes", int, 33554432),
        Option("socket-buffer-size", "The size of the socket's send buffer.", "bytes", int, 102400),
        Option("line-reader", "The class that splits lines; only the standard one exists here.", "class"),
        Option(
            "property",
            "How lines are read: parse.key=true, key.separator=, parse.headers=true, headers.delimiter=, "
            "headers.separator=, headers.key.separator=, ignore.error=true, null.marker=; key.serializer= and "
            "value.serializer= for what is not text, such as Long. May be repeated.",
            "name=value",
            aliases=("reader-property",),
        ),
        Option("reader-config", "A file of such properties.", "file"),
        Option(
            "producer-property",
            "A property of the producer, such as acks=all or linger.ms=50. May be repeated.",
            "name=value",
            aliases=("command-property",),
        ),
        PRODUCER_CONFIG,
    ],
    epilog=(
        "Example, with keys: kafka-console-producer --bootstrap-server localhost:9092 --topic orders "
        "--property parse.key=true --property key.separator=:"
    ),
)

_AS_PROPERTY = {
    "request-required-acks": "acks",
    "compression-codec": "compression.type",
    "batch-size": "batch.size",
    "message-send-max-retries": "retries",
    "retry-backoff-ms": "retry.backoff.ms",
    "timeout": "linger.ms",
    "request-timeout-ms": "request.timeout.ms",
    "metadata-expiry-ms": "metadata.max.age.ms",
    "max-block-ms": "max.block.ms",
    "max-memory-bytes": "buffer.memory",
    "socket-buffer-size": "send.buffer.bytes",
}


def producer_properties(parsed: Parsed, *, is_interactive: bool) -> dict[str, str]:
    """The client properties: defaults, then the file, then given options, then single properties; the later wins."""
    properties = {key: str(parsed.options[name].default) for name, key in _AS_PROPERTY.items()}
    properties["compression.type"] = "none"
    if is_interactive:
        # A user who types a line expects it to be sent at once.
        properties["linger.ms"] = str(INTERACTIVE_LINGER_MS)
    properties["client.id"] = "console-producer"
    if parsed.has("producer.config"):
        properties |= load_properties(parsed.value("producer.config"))
    if parsed.has("max-partition-memory-bytes"):
        properties["batch.size"] = str(parsed.value("max-partition-memory-bytes"))
    properties |= {key: str(parsed.value(name)) for name, key in _AS_PROPERTY.items() if parsed.has(name)}
    properties |= pairs(parsed.values("producer-property"))
    return properties


def reader_properties(parsed: Parsed) -> dict[str, str]:
    properties = load_properties(parsed.value("reader-config")) if parsed.has("reader-config") else {}
    return properties | pairs(parsed.values("property"))
