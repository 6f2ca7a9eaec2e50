"""The .proto files that every schema may import without a reference: Google's and Confluent's own types.

Start at `well_known`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from moldau.schemas.protobuf.elements import File
from moldau.schemas.protobuf.from_descriptor import file_from_descriptor
from moldau.schemas.protobuf.parser import parse_file

__all__ = ["is_well_known", "well_known"]

_GOOGLE: Final = frozenset(
    f"google/protobuf/{name}.proto"
    for name in (
        *("any", "api", "descriptor", "duration", "empty", "field_mask"),
        *("source_context", "struct", "timestamp", "type", "wrappers"),
    )
) | frozenset(
    f"google/type/{name}.proto"
    for name in (
        *("calendar_period", "color", "date", "datetime", "dayofweek", "decimal", "expr", "fraction", "interval"),
        *("latlng", "localized_text", "money", "month", "phone_number", "postal_address", "quaternion", "timeofday"),
    )
)

_CONFLUENT: Final = {
    "confluent/meta.proto": """
        syntax = "proto3";
        package confluent;
        import "google/protobuf/descriptor.proto";
        message Meta {
          string doc = 1;
          map<string, string> params = 2;
          repeated string tags = 3;
          repeated Rule rules = 4;
        }
        message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
        extend google.protobuf.FileOptions { Meta file_meta = 1088; }
        extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
        extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
        extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
        extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
    """,
    "confluent/type/decimal.proto": """
        syntax = "proto3";
        package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
    """,
    "confluent/type/variant.proto": """
        syntax = "proto3";
        package confluent.type;
        message Variant { bytes metadata = 1; bytes value = 2; }
    """,
    "confluent/types/decimal.proto": """
        syntax = "proto3";
        import public "confluent/type/decimal.proto";
    """,
}


def is_well_known(path: str) -> bool:
    """Whether an import of `path` needs no reference."""
    return path in _GOOGLE or path in _CONFLUENT


@cache
def well_known(path: str) -> File:
    """The tree of a well-known file, cached."""
    if path in _CONFLUENT:
        return parse_file(_CONFLUENT[path])
    return file_from_descriptor(descriptor_of(path))


@cache
def descriptor_of(path: str) -> FileDescriptorProto:
    """Google's own descriptor of one of its files."""
    module = import_module(path.removesuffix(".proto").replace("/", ".") + "_pb2")
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
