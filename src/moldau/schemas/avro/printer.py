"""Prints an Avro type in the form of Java's library, which a registry stores and compares.

Attributes come in a fixed order, fields and extra attributes in the order they were written, a name without
its namespace where that is inherited, and a named type in full only once. Start at `canonical_text`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from moldau.schemas.avro.parser import namespace_of
from moldau.schemas.avro.types import PRIMITIVES, Array, AvroType, Enum, Field, Fixed, Map, Named, Primitive, Record
from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.json_text import Json, render, sorted_keys

__all__ = ["canonical_text", "normalized_text"]

_LOGICAL: Final = ("logicalType", "precision", "scale")


def canonical_text(avro_type: AvroType, known: Iterable[str] = ()) -> str:
    """The type as compact JSON; types named in `known` (those of references) are written by name only."""
    return _text(_Printer(known), avro_type)


def normalized_text(avro_type: AvroType, known: Iterable[str] = ()) -> str:
    """The text that is the same for schemas that differ only in the order of aliases and extra attributes."""
    return _text(_NormalizingPrinter(known), avro_type)


def _text(printer: _Printer, avro_type: AvroType) -> str:
    try:
        return render(printer.json(avro_type, ""))
    except RecursionError:
        raise InvalidSchemaError("the Avro schema is nested too deeply") from None


class _Printer:
    """Converts types to JSON values; keeps track of the named types already written in full."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = set(known)

    def json(self, avro_type: AvroType, namespace: str) -> Json:
        match avro_type:
            case Primitive(kind, properties):
                return {"type": kind, **self._properties(properties)} if properties else kind
            case Array():
                return {
                    "type": "array",
                    "items": self.json(avro_type.items, namespace),
                    **self._properties(avro_type.properties),
                }
            case Map():
                return {
                    "type": "map",
                    "values": self.json(avro_type.values, namespace),
                    **self._properties(avro_type.properties),
                }
            case Record() | Enum() | Fixed():
                return self._named_type(avro_type, namespace)
        return [self.json(branch, namespace) for branch in avro_type.branches]

    def _named_type(self, named: Named, namespace: str) -> Json:
        if named.full_name in self._known:
            return _relative(named.full_name, namespace)
        self._known.add(named.full_name)
        space, _, simple = named.full_name.rpartition(".")
        shown: dict[str, Json] = {"type": named.kind, "name": simple}
        if space != namespace:
            shown["namespace"] = space
        if self._shows_doc(named.doc):
            shown["doc"] = named.doc
        match named:
            case Record():
                shown["type"] = "error" if named.is_error else "record"
                shown["fields"] = [self._field(field, space) for field in named.fields]
            case Enum():
                shown["symbols"] = list(named.symbols)
                if named.default is not None:
                    shown["default"] = named.default
            case Fixed():
                shown["size"] = named.size
        shown.update(self._properties(named.properties))
        if named.aliases:
            shown["aliases"] = self._aliases([_relative(alias, space) for alias in named.aliases])
        return shown

    def _field(self, field: Field, namespace: str) -> Json:
        shown: dict[str, Json] = {"name": field.name, "type": self.json(field.type, namespace)}
        if self._shows_doc(field.doc):
            shown["doc"] = field.doc
        if field.has_default:
            shown["default"] = self._value(field.default)
        if field.order != "ascending":
            shown["order"] = field.order
        if field.aliases:
            shown["aliases"] = self._aliases(list(field.aliases))
        shown.update(self._properties(field.properties))
        return shown

    def _properties(self, properties: Mapping[str, Json]) -> Mapping[str, Json]:
        return properties

    def _aliases(self, aliases: list[str]) -> list[str]:
        return aliases

    def _shows_doc(self, doc: str | None) -> bool:
        return doc is not None

    def _value(self, value: Any) -> Any:
        return value


class _NormalizingPrinter(_Printer):
    """Like `_Printer`, with aliases and extra attributes sorted: the logical type first, then the others by name."""

    def _properties(self, properties: Mapping[str, Json]) -> Mapping[str, Json]:
        logical = {key: properties[key] for key in _LOGICAL if key in properties}
        return logical | {key: sorted_keys(properties[key]) for key in sorted(properties) if key not in logical}

    def _aliases(self, aliases: list[str]) -> list[str]:
        return sorted(aliases)

    def _shows_doc(self, doc: str | None) -> bool:
        return bool(doc)

    def _value(self, value: Any) -> Any:
        return sorted_keys(value)


def _relative(full_name: str, namespace: str) -> str:
    """A name as written inside `namespace`; a name equal to a primitive type keeps its namespace."""
    simple = full_name.rpartition(".")[2]
    return simple if namespace_of(full_name) == namespace and simple not in PRIMITIVES else full_name
