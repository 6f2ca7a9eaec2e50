"""Puts a schema and all its imports into one of Google's descriptor pools, which provides the message classes.

Start at `Compiled`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import text_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.protobuf.descriptors import CustomOption, descriptor_of_file, option_as_text

if TYPE_CHECKING:
    from moldau.schemas.protobuf.schema import ProtobufSchema

__all__ = ["MAIN", "Compiled", "parse_with_extensions"]

MAIN: Final = "default"
"""The schema's own file name in the pool: a schema has no path of its own."""

_DESCRIPTORS: Final = "google/protobuf/descriptor.proto"


class Compiled:
    """A schema's descriptor and a pool that holds it together with its imports."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self.pool = pool_with(schema.imported)
        self.descriptor, custom = descriptor_of_file(schema.file, MAIN, schema.symbols)
        if custom:
            self._fill_in(custom, schema)
        _add(self.pool, self.descriptor)

    def message(self, full_name: str) -> Descriptor:
        return self.pool.FindMessageTypeByName(full_name)

    def _fill_in(self, custom: list[CustomOption], schema: ProtobufSchema) -> None:
        """Set custom options with the help of a second pool, which also has the schema's own extensions."""
        scratch = pool_with({**schema.imported, _DESCRIPTORS: schema.well_known(_DESCRIPTORS)})
        bare = FileDescriptorProto()
        bare.CopyFrom(self.descriptor)
        _add(scratch, bare)
        for options, option, scope in custom:
            extension = schema.symbols.resolve_extension(option.name[1:].partition(")")[0], scope)
            if extension is None:
                continue
            known = GetMessageClass(scratch.FindMessageTypeByName(options.DESCRIPTOR.full_name))()
            try:
                text_format.Merge(option_as_text(option, extension), known)
                options.MergeFromString(known.SerializeToString())
            except (text_format.ParseError, DecodeError, ValueError) as error:
                raise InvalidSchemaError(
                    f"Invalid Protobuf schema: the option {option.name} is invalid: {error}"
                ) from None


def pool_with(imported: Mapping[str, ProtobufSchema]) -> DescriptorPool:
    """A pool with the given files; each file is added after its own imports."""
    pool = DescriptorPool()
    added: set[str] = set()
    for path, schema in imported.items():
        _add_with_imports(pool, path, schema, added)
    return pool


def parse_with_extensions(data: bytes, imported: Mapping[str, ProtobufSchema]) -> Any:
    """Read a compiled file with its own extensions and those of its imports, so that custom options are decoded."""
    plain = FileDescriptorProto.FromString(data)
    try:
        pool = pool_with(imported)
        if _DESCRIPTORS not in imported:
            return plain
        _add(pool, plain)
        return GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FileDescriptorProto")).FromString(data)
    except (InvalidSchemaError, KeyError):
        return plain


def _add_with_imports(pool: DescriptorPool, path: str, schema: ProtobufSchema, added: set[str]) -> None:
    if path in added:
        return
    added.add(path)
    for inner_path, inner in schema.imported.items():
        _add_with_imports(pool, inner_path, inner, added)
    descriptor, _ = descriptor_of_file(schema.file, path, schema.symbols)
    _add(pool, descriptor)


def _add(pool: DescriptorPool, descriptor: FileDescriptorProto) -> None:
    try:
        pool.Add(descriptor)
    except TypeError as error:
        raise InvalidSchemaError(f"Invalid Protobuf schema: {error}") from None
