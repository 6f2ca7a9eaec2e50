"""Protobuf message classes made at run time, as a compiler would have made them from these files:

// people.proto                               // address.proto
syntax = "proto3";                            syntax = "proto3";
package people;                               package people;
import "address.proto";                       message Address { string city = 1; }
import "google/protobuf/timestamp.proto";
message Ignored { int32 x = 1; }
message Person {
  string name = 1;
  Address address = 2;
  google.protobuf.Timestamp born = 3;
  message Pet { string name = 1; }
  repeated Pet pets = 4;
}
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

__all__ = ["message_class"]

STRING, MESSAGE, INT32 = 9, 11, 5
OPTIONAL, REPEATED = 1, 3


def message_class(full_name: str) -> type[Any]:
    """The class of a message, such as `people.Person`."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(full_name))


def _files() -> list[descriptor_pb2.FileDescriptorProto]:
    address = descriptor_pb2.FileDescriptorProto(name="address.proto", package="people", syntax="proto3")
    _field(address.message_type.add(name="Address"), "city", 1, STRING)
    people = descriptor_pb2.FileDescriptorProto(name="people.proto", package="people", syntax="proto3")
    people.dependency.extend(["address.proto", "google/protobuf/timestamp.proto"])
    _field(people.message_type.add(name="Ignored"), "x", 1, INT32)
    person = people.message_type.add(name="Person")
    _field(person, "name", 1, STRING)
    _field(person, "address", 2, MESSAGE, type_name=".people.Address")
    _field(person, "born", 3, MESSAGE, type_name=".google.protobuf.Timestamp")
    _field(person.nested_type.add(name="Pet"), "name", 1, STRING)
    _field(person, "pets", 4, MESSAGE, type_name=".people.Person.Pet", label=REPEATED)
    return [address, people]


def _field(message: Any, name: str, number: int, kind: int, *, type_name: str = "", label: int = OPTIONAL) -> None:
    message.field.add(name=name, number=number, type=kind, label=label, type_name=type_name or None)


_POOL = descriptor_pool.DescriptorPool()
_POOL.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
for _file in _files():
    _POOL.AddSerializedFile(_file.SerializeToString())
