"""Random schemas, values and records, the same for both sides. Start at `Drawing`."""

from __future__ import annotations

import struct as packing
from decimal import Decimal
from random import Random
from typing import Any

from moldau.connect.api import DataSchema, Header, Kind, SinkRecord
from moldau.connect.api import schemas as s
from moldau.connect.converters.json import JsonConverter
from moldau.formats.registry.data_schema import NO_DEFAULT, DataField

__all__ = ["Drawing", "as_envelope"]

PRIMITIVES = (s.INT8, s.INT16, s.INT32, s.INT64, s.FLOAT32, s.FLOAT64, s.BOOLEAN, s.STRING, s.BYTES)
LOGICAL = (s.DATE, s.TIME, s.TIMESTAMP, s.decimal(2))
BITS = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}
WORDS = ("", "a", "true", "12", "-7", "3.5", "žluť", 'q"uote', "x" * 20, "300", "1e3", "null", "2024-02-29")
NAMES = ("a", "b", "c", "d", "e")

ENVELOPE = JsonConverter()


def as_envelope(schema: DataSchema | None, value: Any) -> Any:
    """Data as JSON with its schema, parsed: what the other side is given, and what results are compared as."""
    import json

    data = ENVELOPE.from_connect("t", schema, value)
    return None if data is None else json.loads(data)


class Drawing:
    """Draws from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def schema(self, depth: int = 0, *, has_maps: bool = True) -> DataSchema:
        kinds = ["primitive"] * 5 + ["logical"] * 2
        if depth < 2:
            kinds += ["array", "struct"] + (["map"] if has_maps else [])
        match self.random.choice(kinds):
            case "primitive":
                made = self.random.choice(PRIMITIVES)
            case "logical":
                made = self.random.choice(LOGICAL)
            case "array":
                made = s.array(self.schema(depth + 1, has_maps=has_maps))
            case "map":
                made = s.map_of(self.random.choice((s.STRING, s.INT32)), self.schema(depth + 1))
            case _:
                return self.struct(depth + 1, has_maps=has_maps)
        return self.decorated(made)

    def decorated(self, schema: DataSchema) -> DataSchema:
        if self.random.random() < 0.4:
            schema = s.optional(schema)
        if self.random.random() < 0.2 and schema.kind not in (Kind.ARRAY, Kind.MAP, Kind.STRUCT):
            schema = s.with_default(schema, self.value(schema, may_be_null=False))
        return schema

    def struct(self, depth: int = 0, *, has_maps: bool = True) -> DataSchema:
        names = self.random.sample(NAMES, self.random.randint(1, 4))
        fields = tuple(DataField(name, self.schema(depth, has_maps=has_maps)) for name in names)
        name = self.random.choice((None, "org.example.Row"))
        version = self.random.choice((None, 3))
        return DataSchema(Kind.STRUCT, self.random.random() < 0.3, name, version, fields=fields)

    def value(self, schema: DataSchema, *, may_be_null: bool = True) -> Any:
        if may_be_null and schema.is_optional and self.random.random() < 0.3:
            return None
        if schema.name == s.DECIMAL_NAME:
            return Decimal(self.random.randint(-(10**6), 10**6)).scaleb(-2)
        if schema.name in (s.DATE_NAME, s.TIME_NAME, s.TIMESTAMP_NAME):
            return self.moment(schema.name)
        match schema.kind:
            case Kind.ARRAY:
                return [self.value(schema.element) for _ in range(self.random.randint(0, 3))]
            case Kind.MAP:
                assert schema.key is not None
                return {self.value(schema.key): self.value(schema.element) for _ in range(self.random.randint(0, 2))}
            case Kind.STRUCT:
                return {field.name: self.value(field.schema) for field in schema.fields}
        return self.primitive(schema.kind)

    def moment(self, name: str) -> int:
        if name == s.DATE_NAME:
            return self.random.randint(-10_000, 30_000)
        if name == s.TIME_NAME:
            return self.random.randint(0, 86_399_999)
        return self.random.choice((0, 86_400_000 * 365, self.random.randint(-(10**12), 2 * 10**12)))

    def primitive(self, kind: Kind) -> Any:
        if kind in BITS:
            edge = 1 << (BITS[kind] - 1)
            return self.random.choice((0, 1, -1, edge - 1, -edge, self.random.randrange(-edge, edge)))
        match kind:
            case Kind.BOOLEAN:
                return self.random.random() < 0.5
            case Kind.STRING:
                return self.random.choice(WORDS)
            case Kind.BYTES:
                return self.random.randbytes(self.random.randint(0, 6))
            case Kind.FLOAT32:
                return packing.unpack(">f", packing.pack(">f", self.number()))[0]
        return self.number()

    def number(self) -> float:
        return self.random.choice((0.0, 1.0, -0.5, 0.1, 1e10, 123456.789, -1e-4, self.random.uniform(-1e6, 1e6)))

    def plain(self, depth: int = 0) -> Any:
        """Data without schema, as JSON has them."""
        kinds = ["null", "bool", "int", "float", "text"] + (["list", "map"] if depth < 2 else [])
        match self.random.choice(kinds):
            case "null":
                return None
            case "bool":
                return self.random.random() < 0.5
            case "int":
                return self.primitive(Kind.INT64)
            case "float":
                return self.number()
            case "text":
                return self.random.choice(WORDS)
            case "list":
                return [self.plain(depth + 1) for _ in range(self.random.randint(0, 3))]
        return self.plain_map(depth)

    def plain_map(self, depth: int = 0) -> dict[str, Any]:
        return {name: self.plain(depth + 1) for name in self.random.sample(NAMES, self.random.randint(0, 4))}

    def part(self, *, has_maps: bool = True) -> tuple[DataSchema | None, Any]:
        """A key or value: mostly structs and maps, sometimes something else."""
        chance = self.random.random()
        if chance < 0.05:
            return None, None
        if chance < 0.35:
            return None, self.plain_map()
        if chance < 0.4:
            return None, self.plain()
        schema = self.schema(has_maps=has_maps) if chance < 0.5 else self.struct(has_maps=has_maps)
        value = self.value(schema)
        if value is None and schema.default is not NO_DEFAULT:
            value = schema.default  # the envelope of the case puts it in the place of a null
        return schema, value

    def record(self, *, has_maps: bool = True) -> SinkRecord:
        key_schema, key = self.part(has_maps=has_maps)
        value_schema, value = self.part(has_maps=has_maps)
        headers = tuple(
            Header(self.random.choice(("h", "i")), self.random.choice(WORDS), s.STRING)
            for _ in range(self.random.randint(0, 2))
        )
        return SinkRecord(
            topic=self.random.choice(("orders", "orders-eu", "x.y", "logs_2024")),
            partition=self.random.randint(0, 3),
            offset=self.random.randint(0, 99),
            key=key,
            key_schema=key_schema,
            value=value,
            value_schema=value_schema,
            timestamp=self.random.choice((None, 1_700_000_000_000, 0)),
            headers=headers,
        )
