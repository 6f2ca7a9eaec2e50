"""The command `ksql-datagen`: write made-up records to a topic. Start at `main`."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from moldau.cli.cluster_options import report_client_log
from moldau.cli.tool import ToolError, run_body
from moldau.client.connection import load_properties, normalize_servers
from moldau.client.producer import Producer
from moldau.client.schema_registry import registered_schemas
from moldau.formats.codec import RowCodec, codec
from moldau.formats.columns import Column
from moldau.formats.datagen.quickstarts import QUICKSTARTS
from moldau.formats.datagen.rows import RowMaker
from moldau.formats.format import parse_delimiter, row_format
from moldau.formats.registry.inference import columns_of
from moldau.formats.registry.schema_texts import data_schema_of
from moldau.formats.types import ArrayType, MapType, SqlType, StructType
from moldau.schemas.avro.schema import parse_avro
from moldau.serdes.plain import BYTES

__all__ = ["main"]

USAGE = """\
usage: ksql-datagen [name=value ...]

Writes made-up records to a topic until all are written, or until Ctrl-C.

  quickstart=NAME          one of {names}
  schema=FILE              or an Avro schema, with hints in arg.properties
  key=FIELD                the field that is the key too (needed with schema=)
  topic=NAME               default: NAME_kafka_topic_FORMAT
  format=FORMAT            value-format=FORMAT is the same: json (default), avro, protobuf, json_sr, delimited, kafka
  key-format=FORMAT        default: kafka
  value-delimiter=CHAR     between the fields of delimited; TAB and SPACE too
  iterations=N             how many records (default: 1000000; -1 writes for ever)
  maxInterval=MS           wait a random time up to this between records (default: 500)
  msgRate=N                or write so many records a second
  bootstrap-server=LIST    default: localhost:9092
  schemaRegistryUrl=URL    default: http://localhost:8081
  propertiesFile=FILE      properties of the producer
  printRows=true|false     whether each record is shown (default: true)
  seed=N                   make the same records each time

examples:
  ksql-datagen quickstart=orders topic=orders msgRate=5
  ksql-datagen quickstart=users format=avro iterations=100
"""
NAMES = frozenset({"format", "nThreads"} | set(re.findall(r"^  ([\w-]+)=", USAGE, re.MULTILINE)) | {"value-format"})
"""The options of the usage, and two that mean the same as another or nothing: one thread is enough."""
DEFAULT_ITERATIONS, DEFAULT_INTERVAL_MS = 1_000_000, 500


@dataclass(frozen=True, slots=True)
class DataSet:
    """What is written: rows of columns, with one of them as the key."""

    topic: str
    rows: RowMaker
    columns: tuple[Column, ...]
    key: Column
    key_codec: RowCodec
    value_codec: RowCodec


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0].lstrip("-") in ("help", "h"):
        print(USAGE.format(names=", ".join(QUICKSTARTS)))
        return 0 if words else 1
    return run_body(lambda: _run(_options(words)))


def _options(words: Sequence[str]) -> dict[str, str]:
    found = {}
    for word in words:
        name, equals, value = word.lstrip("-").partition("=")
        if not equals or name not in NAMES:
            raise ToolError(f"{word!r} is not understood; `ksql-datagen help` lists what there is")
        found["format" if name == "value-format" else name] = value
    return found


def _run(options: Mapping[str, str]) -> None:
    random = Random(_number(options, "seed", 0)) if "seed" in options else Random()
    data = _data_set(options, random)
    iterations = _number(options, "iterations", DEFAULT_ITERATIONS)
    rate = _number(options, "msgRate", -1)
    interval_s = _number(options, "maxInterval", -1 if rate > 0 else DEFAULT_INTERVAL_MS) / 1000
    properties = load_properties(options["propertiesFile"]) if "propertiesFile" in options else {}
    properties["bootstrap.servers"] = normalize_servers(options.get("bootstrap-server", "localhost:9092"))
    is_shown = options.get("printRows", "true").lower() != "false"
    with Producer[bytes, bytes](
        properties=properties, key_serializer=BYTES, value_serializer=BYTES, report=report_client_log
    ) as producer:
        started, number = time.monotonic(), 0
        while iterations < 0 or number < iterations:
            _send_one(producer, data, is_shown=is_shown)
            number += 1
            pause_s = random.uniform(0, interval_s) if rate <= 0 else started + number / rate - time.monotonic()
            producer.poll(max(pause_s, 0.0) if number != iterations else 0.0)


def _send_one(producer: Producer[bytes, bytes], data: DataSet, *, is_shown: bool) -> None:
    row = data.rows.make()
    values = tuple(_value(column.type, row[column.name]) for column in data.columns)
    key = _value(data.key.type, row[data.key.name])
    now_ms = time.time_ns() // 1_000_000
    producer.send(data.topic, data.value_codec.encode(values), key=data.key_codec.encode((key,)), timestamp_ms=now_ms)
    if is_shown:
        shown = " | ".join(json.dumps(one, ensure_ascii=False, default=str) for one in row.values())
        print(f"[{row[data.key.name]}] --> ([ {shown} ]) ts:{now_ms}", flush=True)


def _data_set(options: Mapping[str, str], random: Random) -> DataSet:
    name = options.get("quickstart", "").lower()
    if bool(name) == ("schema" in options):
        raise ToolError("give quickstart= or schema=, one of the two")
    if name and name not in QUICKSTARTS:
        raise ToolError(f"there is no quickstart {name!r}; there are {', '.join(QUICKSTARTS)}")
    schema = QUICKSTARTS[name].schema if name else _read_schema(options["schema"])
    key_name = options.get("key") or (QUICKSTARTS[name].key if name else "")
    rows = RowMaker(schema, random)
    columns = columns_of(data_schema_of(parse_avro(json.dumps(schema))), is_key=False, keep_case=True)
    key = next((column for column in columns if column.name == key_name), None)
    if key is None:
        raise ToolError(f"key= must name a field: {', '.join(column.name for column in columns)}")
    format_name = options.get("format", "json")
    label = name or Path(options.get("schema", "")).stem
    topic = options.get("topic") or f"{label}_kafka_topic_{format_name.lower()}"
    return DataSet(topic, rows, columns, key, *_codecs(options, format_name, topic, columns, key))


def _codecs(
    options: Mapping[str, str], format_name: str, topic: str, columns: tuple[Column, ...], key: Column
) -> tuple[RowCodec, RowCodec]:
    delimiter = options.get("value-delimiter")
    value_format = row_format(format_name, {"delimiter": parse_delimiter(delimiter)} if delimiter else None)
    key_format = row_format(options.get("key-format", "kafka"), is_key=True).for_key((key,))
    schemas = None
    if value_format.format.uses_registry or key_format.format.uses_registry:
        schemas = registered_schemas(options.get("schemaRegistryUrl", "http://localhost:8081"), None)
    return (
        codec(key_format, (key,), topic=topic, schemas=schemas),
        codec(value_format.for_value(columns), columns, topic=topic, schemas=schemas),
    )


def _read_schema(file: str) -> Any:
    try:
        return json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise ToolError(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:
        raise ToolError(f"{file} is not an Avro schema: {error}") from None


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name)
    try:
        return default if text is None else int(text)
    except ValueError:
        raise ToolError(f"{name} must be a whole number, not {text!r}") from None


def _value(sql_type: SqlType, value: Any) -> Any:
    """A made value as rows carry it: structs are tuples."""
    match sql_type:
        case _ if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        case StructType(fields=fields):
            return tuple(_value(field.type, value[field.name]) for field in fields)
        case ArrayType(element=element):
            return [_value(element, one) for one in value]
        case MapType(value=inner):
            return {key: _value(inner, one) for key, one in value.items()}
        case _:
            return value


if __name__ == "__main__":
    sys.exit(main())
