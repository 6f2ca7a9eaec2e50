"""Typed rows (a schema and a tuple) to and from bytes: JSON, Avro, Protobuf, DELIMITED, KAFKA. Start at `types`."""
