"""CREATE STREAM and CREATE TABLE: from a statement to a source of the catalogue. Start at `defined_source`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from moldau.formats.checks import check_columns
from moldau.formats.codec import codec
from moldau.formats.columns import Column, RowSchema
from moldau.formats.format import Feature, RowFormat, format_named
from moldau.formats.types import BYTES, STRING, ArrayType, Field, StructType
from moldau.pipeline.ksql.catalogue.catalogue import Catalogue
from moldau.pipeline.ksql.catalogue.key_names import with_key_name
from moldau.pipeline.ksql.catalogue.services import Schemas, Topics
from moldau.pipeline.ksql.catalogue.sources import SYSTEM_COLUMNS, Source
from moldau.pipeline.ksql.catalogue.timestamps import check_timestamp
from moldau.pipeline.ksql.catalogue.topic_settings import topic_settings
from moldau.pipeline.ksql.catalogue.with_properties import CREATE, WithProperties
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.statements import ColumnConstraint, ColumnDefinition, CreateSource, SourceKind

__all__ = ["KEY_CONSTRAINTS", "defined_source", "format_or_default"]

KEY_CONSTRAINTS = (ColumnConstraint.KEY, ColumnConstraint.PRIMARY_KEY)
HEADER_CONSTRAINTS = (ColumnConstraint.HEADERS, ColumnConstraint.HEADER)
HEADERS_TYPE = ArrayType(StructType((Field("KEY", STRING), Field("VALUE", BYTES))))


def format_or_default(properties: WithProperties, part: str, settings: Mapping[str, object]) -> str:
    """The name of the format of `KEY` or `VALUE` that a CREATE statement means."""
    name = properties.format_name(part)
    if name is not None:
        return name
    default = settings.get(f"ksql.persistence.default.format.{part.lower()}")
    if default:
        return str(default)
    if part == "KEY":
        return "KAFKA"
    raise KsqlError(
        "Statement is missing the 'VALUE_FORMAT' property from the WITH clause. Either provide one or set a default "
        "via the 'ksql.persistence.default.format.value' config."
    )


def defined_source(
    statement: CreateSource,
    catalogue: Catalogue,
    topics: Topics,
    schemas: Schemas,
    settings: Mapping[str, object],
) -> Source:
    """The source that a CREATE statement defines; its topic is created if the statement says how."""
    properties = WithProperties.of(statement.properties, CREATE)
    topic = properties.text("KAFKA_TOPIC")
    if not topic:
        raise KsqlError('Missing required property "KAFKA_TOPIC" which has no default value.')
    columns = tuple(replace(one, type=catalogue.resolved(one.type)) for one in statement.columns)
    _check_names(columns)
    names = {part: format_or_default(properties, part, settings) for part in ("KEY", "VALUE")}
    _check_schema_ids(properties, names, columns)
    key_format = properties.format("KEY", names["KEY"])
    value_format = properties.format("VALUE", names["VALUE"])
    partitions, replicas = _topic(topic, properties, topics, statement.kind)
    wrap = properties.flag("WRAP_SINGLE_VALUE")
    if wrap is False:
        value_format = replace(value_format, wrapping=Feature.UNWRAP_SINGLES)
    schema = _schema(columns, key_format, value_format, topic, schemas)
    _check_key(statement, schema)
    wraps = str(settings.get("ksql.persistence.wrap.single.values", "true")).lower() != "false"
    key_format = with_key_name(key_format.for_key(schema.key), statement.name)
    value_format = value_format.for_value(schema.value, wrap=wrap, wrap_by_default=wraps)
    for row_format, part in ((key_format, schema.key), (value_format, schema.value)):
        check_columns(row_format, part)
        if not row_format.format.uses_registry:
            codec(row_format, part)  # raises for columns that the format has no bytes for
    timestamp = properties.timestamp()
    if timestamp is not None:
        check_timestamp(timestamp, schema)
    if columns:
        schemas.register_if_absent(topic, key_format, schema.key)
        schemas.register_if_absent(topic, value_format, schema.value)
    return Source(
        name=statement.name,
        kind=statement.kind,
        schema=schema,
        topic=topic,
        key_format=key_format,
        value_format=value_format,
        partitions=partitions,
        replicas=replicas,
        window=properties.window(),
        timestamp=timestamp,
        header_names=tuple(one.header_key for one in columns if one.constraint in HEADER_CONSTRAINTS),
        column_order=tuple(one.name for one in columns if one.constraint not in KEY_CONSTRAINTS)
        if schema.headers
        else (),
        is_read_only=statement.is_read_only,
        statement=statement.text,
    )


# --- columns -------------------------------------------------------------------------------------------------


def _check_names(columns: Sequence[ColumnDefinition]) -> None:
    for column in columns:
        if column.name in SYSTEM_COLUMNS:
            raise KsqlError(f"'{column.name}' is a reserved column name. You cannot use it as a name for a column.")
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            raise KsqlError(f"Duplicate column names: {column.name}")
        seen.add(column.name)
    _check_headers([one for one in columns if one.constraint in HEADER_CONSTRAINTS])


def _check_headers(columns: Sequence[ColumnDefinition]) -> None:
    names: set[str | None] = set()
    for column in columns:
        if column.header_key is None and column.type != HEADERS_TYPE:
            raise KsqlError(f"Invalid type for HEADERS column: expected {HEADERS_TYPE}, got {column.type}")
        if column.header_key is not None and column.type != BYTES:
            raise KsqlError(f"Invalid type for HEADER('{column.header_key}') column: expected BYTES, got {column.type}")
        if column.header_key in names:
            if column.header_key is None:
                raise KsqlError("Schema already contains a HEADERS column.")
            raise KsqlError(f"Schema already contains a HEADER('{column.header_key}') column.")
        if names and (column.header_key is None or None in names):
            raise KsqlError("Schema already contains a HEADERS column.")
        names.add(column.header_key)


def _schema(
    columns: Sequence[ColumnDefinition],
    key_format: RowFormat,
    value_format: RowFormat,
    topic: str,
    schemas: Schemas,
) -> RowSchema:
    """The declared columns, and those of the registry for a side that declares none."""
    key = tuple(Column(one.name, one.type) for one in columns if one.constraint in KEY_CONSTRAINTS)
    headers = tuple(Column(one.name, one.type) for one in columns if one.constraint in HEADER_CONSTRAINTS)
    value = tuple(Column(one.name, one.type) for one in columns if one.constraint is ColumnConstraint.NONE)
    if not key and key_format.format.uses_registry:
        key = schemas.inferred(topic, key_format)
    if not value:
        if value_format.format.uses_registry:
            value = schemas.inferred(topic, value_format)
        elif not columns:
            raise KsqlError(
                "The statement does not define any columns. The schema can only be read from a schema registry by "
                f"formats that support it, and the value format {value_format.format.name} does not."
            )
    for name in {column.name for column in key} & {column.name for column in value}:
        raise KsqlError(f"Duplicate column names: {name}")
    return RowSchema(key, value, headers)


def _check_key(statement: CreateSource, schema: RowSchema) -> None:
    if statement.kind is SourceKind.TABLE and not schema.key:
        uses_registry = not statement.columns
        hint = (
            " You can define just the primary key and still load the value columns from the Schema Registry, for "
            f"example:\n\tCREATE TABLE {statement.name} (ID INT PRIMARY KEY) WITH (...);"
            if uses_registry
            else ""
        )
        raise KsqlError(f"Tables require a PRIMARY KEY. Please define the PRIMARY KEY.{hint}")


def _check_schema_ids(
    properties: WithProperties, formats: Mapping[str, str], columns: Sequence[ColumnDefinition]
) -> None:
    for part, format_name in formats.items():
        name = f"{part}_SCHEMA_ID"
        if properties.number(name) is None:
            continue
        if not format_named(format_name).uses_registry:
            raise KsqlError(
                f"{part}_FORMAT should support schema inference when {name} is provided. "
                f"Current format is {format_name.upper()}."
            )
        wanted = KEY_CONSTRAINTS if part == "KEY" else (ColumnConstraint.NONE,)
        if any(one.constraint in wanted for one in columns):
            raise KsqlError(f"Table elements and {name} cannot both exist for create statement.")


# --- topics --------------------------------------------------------------------------------------------------


def _topic(topic: str, properties: WithProperties, topics: Topics, kind: SourceKind) -> tuple[int, int]:
    """The partitions and replicas of a topic, which is created if it is absent and PARTITIONS is given."""
    wanted = properties.number("PARTITIONS")
    replicas = properties.number("REPLICAS") or 1
    is_windowed = properties.window() is not None
    settings = topic_settings(properties, is_table=kind is SourceKind.TABLE, is_windowed=is_windowed)
    found = topics.partitions(topic)
    if found is not None:
        if wanted is not None and wanted != found:
            raise KsqlError(
                f"A Kafka topic with the name '{topic}' already exists, with different partition/replica "
                f"configuration than required. KSQL expects {wanted} partitions (topic has {found})"
            )
        return found, replicas
    if wanted is None:
        raise KsqlError(
            f"Topic '{topic}' does not exist. If you want to create a new topic for the stream/table please re-run "
            "the statement providing the required 'PARTITIONS' configuration in the WITH clause "
            "(and optionally 'REPLICAS'). For example: CREATE STREAM S (ID INT) WITH "
            f"(KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON', PARTITIONS=1);"
        )
    topics.create(topic, wanted, replicas, settings)
    return wanted, replicas
