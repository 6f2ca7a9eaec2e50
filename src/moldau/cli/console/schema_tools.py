"""The six schema-aware console tools: the plain ones with another reader or formatter, and other help texts.

kafka-avro-console-producer and -consumer, and the same for JSON Schema and Protobuf. Start at `avro_producer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from moldau.cli.console import consumer_options, producer_options
from moldau.cli.console.consumer import main as consume
from moldau.cli.console.producer import main as produce
from moldau.cli.options import Parser

__all__ = [
    "avro_consumer",
    "avro_producer",
    "json_schema_consumer",
    "json_schema_producer",
    "protobuf_consumer",
    "protobuf_producer",
]

_EXAMPLES = {
    "avro": '{"type":"record","name":"R","fields":[{"name":"f1","type":"string"}]}',
    "json-schema": '{"type":"object","properties":{"f1":{"type":"string"}}}',
    "protobuf": 'syntax = "proto3"; message R { string f1 = 1; }',
}
_NAMES = {"avro": "Avro", "json-schema": "JSON Schema", "protobuf": "Protobuf"}
_CLASSES = {"avro": "Avro", "json-schema": "JsonSchema", "protobuf": "Protobuf"}

_PRODUCER_PROPERTIES = (
    "value.schema= the schema of values; value.schema.file= a file with it; value.schema.id= one that is registered. "
    "key.schema=, key.schema.file=, key.schema.id= with parse.key=true and key.separator= for keys, or "
    "key.serializer=StringSerializer for keys without a schema. schema.registry.url= (http://localhost:8081), "
    "auto.register=false to use registered schemas only, value.subject.name.strategy=, value.refs=, "
    "and what kafka-console-producer knows. May be repeated."
)
_CONSUMER_PROPERTIES = (
    "schema.registry.url= (http://localhost:8081), print.key=true, key.separator=, print.schema.ids=true, "
    "schema.id.separator=, key.deserializer= for keys without a schema, and what kafka-console-consumer knows. "
    "May be repeated."
)


def avro_producer(argv: Sequence[str] | None = None) -> int:
    return _produce("avro", argv)


def avro_consumer(argv: Sequence[str] | None = None) -> int:
    return _consume("avro", argv)


def json_schema_producer(argv: Sequence[str] | None = None) -> int:
    return _produce("json-schema", argv)


def json_schema_consumer(argv: Sequence[str] | None = None) -> int:
    return _consume("json-schema", argv)


def protobuf_producer(argv: Sequence[str] | None = None) -> int:
    return _produce("protobuf", argv)


def protobuf_consumer(argv: Sequence[str] | None = None) -> int:
    return _consume("protobuf", argv)


def _produce(kind: str, argv: Sequence[str] | None) -> int:
    epilog = (
        f"Example: kafka-{kind}-console-producer --bootstrap-server localhost:9092 --topic t \\\n"
        f"  --property value.schema='{_EXAMPLES[kind]}'\n"
        '  {"f1": "hello"}'
    )
    description = f"Send each line of standard input, as JSON of values with {_NAMES[kind]} schemas, to a topic."
    parser = _with_words(producer_options.PARSER, description, epilog, _PRODUCER_PROPERTIES)
    return produce(argv, parser=parser, line_reader=f"{_CLASSES[kind]}MessageReader")


def _consume(kind: str, argv: Sequence[str] | None) -> int:
    epilog = (
        f"Example: kafka-{kind}-console-consumer --bootstrap-server localhost:9092 --topic t --from-beginning \\\n"
        "  --property print.key=true --property print.schema.ids=true"
    )
    description = f"Print the records of a topic that were written with {_NAMES[kind]} schemas, as JSON."
    parser = _with_words(consumer_options.PARSER, description, epilog, _CONSUMER_PROPERTIES)
    return consume(argv, parser=parser, default_formatter=f"{_CLASSES[kind]}MessageFormatter")


def _with_words(parser: Parser, description: str, epilog: str, properties: str) -> Parser:
    """The same options with other help texts."""
    options = [
        replace(option, help=properties) if option.name == "property" else option for option in parser.options.values()
    ]
    return Parser(description, options, epilog=epilog)
