"""Rows in the formats whose schemas are in a registry: Avro, JSON Schema, Protobuf. Start at `data_schema`."""
