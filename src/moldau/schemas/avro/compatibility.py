"""Whether data of one Avro schema can be read with another: the specification's schema resolution.

Names are compared without their namespace, full names only through aliases; logical types, documentation,
order and custom attributes are ignored. Start at `differences`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moldau.schemas.avro.types import (
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Union,
    branch_name,
)
from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.findings import NOTHING, Findings, join_findings
from moldau.schemas.incompatibility import Incompatibility, Sides, shorten
from moldau.schemas.pairs import Effort, Pairs
from moldau.schemas.parsed_schema import SchemaType

__all__ = ["differences"]

_PROMOTIONS: Final = {
    "long": frozenset({"int"}),
    "float": frozenset({"int", "long"}),
    "double": frozenset({"int", "long", "float"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
"""The other types that a reader of each primitive type accepts."""


def differences(reader: AvroType, writer: AvroType, sides: Sides, effort: Effort) -> list[Incompatibility]:
    """Return why `reader` cannot read what `writer` wrote; an empty list means that it can."""
    try:
        found = _Comparison(sides, effort).compare(reader, writer, "")
    except RecursionError:
        raise InvalidSchemaError("the Avro schemas are nested too deeply to be compared") from None
    return found.distinct()


class _Comparison:
    """One comparison, with its results for pairs of types."""

    def __init__(self, sides: Sides, effort: Effort) -> None:
        self._sides = sides
        self._effort = effort
        self._pairs = Pairs()
        self._branches: dict[int, _Branches] = {}

    def compare(self, reader: AvroType, writer: AvroType, path: str) -> Findings:
        self._effort.spend()
        if isinstance(reader, Primitive) and isinstance(writer, Primitive):
            return self._primitives(reader.kind, writer.kind, path)
        place = shorten(path)
        return self._pairs.compare((id(reader), id(writer)), lambda: self._structures(reader, writer, place))

    def _primitives(self, reader: str, writer: str, path: str) -> Findings:
        if reader == writer or writer in _PROMOTIONS.get(reader, ()):
            return NOTHING
        return self._type_mismatch(reader, writer, path)

    def _structures(self, reader: AvroType, writer: AvroType, path: str) -> Findings:
        if isinstance(writer, Union):
            return self._written_union(reader, writer, path)
        if isinstance(reader, Union):
            return self._read_union(reader, writer, path)
        match reader, writer:
            case Record(), Record():
                return self._names(reader, writer, path) + self._fields(reader, writer, path)
            case Enum(), Enum():
                return self._names(reader, writer, path) + self._symbols(reader, writer, path)
            case Fixed(), Fixed():
                return self._names(reader, writer, path) + self._sizes(reader, writer, path)
            case Array(), Array():
                return self.compare(reader.items, writer.items, f"{path}/items")
            case Map(), Map():
                return self.compare(reader.values, writer.values, f"{path}/values")
        return self._type_mismatch(_describe_type(reader), _describe_type(writer), path)

    def _written_union(self, reader: AvroType, writer: Union, path: str) -> Findings:
        """Compare with a writer's union: data may be of any branch, so the reader must accept all of them."""
        found: list[Findings] = []
        for position, branch in enumerate(writer.branches):
            if isinstance(reader, Union):
                found.append(self._read_union(reader, branch, f"{path}/{position}"))
            else:
                found.append(self.compare(reader, branch, path))
        return join_findings(found)

    def _read_union(self, reader: Union, writer: AvroType, path: str) -> Findings:
        """Compare with a reader's union: one branch that accepts the written type is enough."""
        branches = self._branches.get(id(reader))
        if branches is None:
            branches = self._branches[id(reader)] = _Branches(reader)
        if any(not self.compare(branch, writer, path) for branch in branches.likely(writer)):
            return NOTHING
        return self._finding(
            "MISSING_UNION_BRANCH",
            path,
            f"The {self._sides.reader} schema has no branch in the union at path '{path or '/'}' for "
            f"{_describe_type(writer)} of the {self._sides.writer} schema",
            f"reader union lacking writer type: {writer.kind.upper()}",
        )

    def _names(self, reader: Named, writer: Named, path: str) -> Findings:
        if _same_name(reader, writer):
            return NOTHING
        return self._finding(
            "NAME_MISMATCH",
            f"{path}/name",
            f"The {reader.kind} '{reader.full_name}' at path '{path}/name' of the {self._sides.reader} schema "
            f"is called '{writer.full_name}' in the {self._sides.writer} schema, and no alias says so",
            f"expected: {writer.full_name}",
        )

    def _fields(self, reader: Record, writer: Record, path: str) -> Findings:
        self._effort.spend(len(writer.fields))
        written = {field.name: field for field in writer.fields}
        found: list[Findings] = []
        for position, field in enumerate(reader.fields):
            place = f"{path}/fields/{position}"
            counterpart = _counterpart(field, written)
            if counterpart is not None:
                found.append(self.compare(field.type, counterpart.type, f"{place}/type"))
            elif not field.has_default:
                found.append(
                    self._finding(
                        "READER_FIELD_MISSING_DEFAULT_VALUE",
                        place,
                        f"The field '{field.name}' at path '{place}' of record '{reader.full_name}' in the "
                        f"{self._sides.reader} schema has no default value and is missing in the "
                        f"{self._sides.writer} schema",
                        field.name,
                    )
                )
        return join_findings(found)

    def _symbols(self, reader: Enum, writer: Enum, path: str) -> Findings:
        self._effort.spend_on_text(len(writer.symbols))
        missing = sorted(writer.known_symbols - reader.known_symbols)
        if not missing or reader.default is not None:
            return NOTHING
        listed = f"[{', '.join(missing)}]"
        return self._finding(
            "MISSING_ENUM_SYMBOLS",
            f"{path}/symbols",
            f"The enum '{reader.full_name}' at path '{path}/symbols' of the {self._sides.reader} schema lacks the "
            f"symbols {listed} of the {self._sides.writer} schema and has no default",
            listed,
        )

    def _sizes(self, reader: Fixed, writer: Fixed, path: str) -> Findings:
        if reader.size == writer.size:
            return NOTHING
        return self._finding(
            "FIXED_SIZE_MISMATCH",
            f"{path}/size",
            f"The fixed '{reader.full_name}' at path '{path}/size' has {reader.size} bytes in the "
            f"{self._sides.reader} schema and {writer.size} in the {self._sides.writer} schema",
            f"expected: {writer.size}, found: {reader.size}",
        )

    def _type_mismatch(self, reader: str, writer: str, path: str) -> Findings:
        return self._finding(
            "TYPE_MISMATCH",
            path or "/",
            f"The type at path '{path or '/'}' is {reader} in the {self._sides.reader} schema, which cannot read "
            f"{writer} of the {self._sides.writer} schema",
            f"reader type: {reader.partition(' ')[0].upper()} not compatible with "
            f"writer type: {writer.partition(' ')[0].upper()}",
        )

    def _finding(self, error_type: str, path: str, description: str, info: str) -> Findings:
        self._effort.spend_on_text(len(description))
        return Findings(Incompatibility.of(SchemaType.AVRO, error_type, path or "/", description, info))


def _counterpart(field: Field, written: dict[str, Field]) -> Field | None:
    return next((written[name] for name in (field.name, *field.aliases) if name in written), None)


def _same_name(reader: Named, writer: Named) -> bool:
    same = reader.full_name.rpartition(".")[2] == writer.full_name.rpartition(".")[2]
    return same or writer.full_name in reader.aliases


class _Branches:
    """A union's branches, indexed by the types they may read: comparing all pairs of large unions takes too long."""

    def __init__(self, union: Union) -> None:
        self._by_key: dict[tuple[str, str], list[AvroType]] = {}
        for branch in union.branches:
            for key in _reading_keys(branch):
                self._by_key.setdefault(key, []).append(branch)

    def likely(self, writer: AvroType) -> Iterator[AvroType]:
        """The branches that can read the written type, unless they are incompatible inside."""
        keys = [(writer.kind, "")]
        if isinstance(writer, Record | Enum | Fixed):
            keys = [(writer.kind, writer.full_name.rpartition(".")[2]), (f"{writer.kind} alias", writer.full_name)]
        for key in keys:
            yield from self._by_key.get(key, ())


def _reading_keys(branch: AvroType) -> list[tuple[str, str]]:
    if isinstance(branch, Record | Enum | Fixed):
        simple = (branch.kind, branch.full_name.rpartition(".")[2])
        return [simple, *((f"{branch.kind} alias", alias) for alias in branch.aliases)]
    return [(kind, "") for kind in (branch.kind, *_PROMOTIONS.get(branch.kind, ()))]


def _describe_type(avro_type: AvroType) -> str:
    name = branch_name(avro_type)
    return name if name == avro_type.kind else f"{avro_type.kind} '{name}'"
