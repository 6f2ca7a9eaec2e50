"""Schemas: parses Avro, JSON Schema and Protobuf texts, checks compatibility, and encodes and decodes values.

Pure: works on texts and bytes, without I/O. `registry` stores schemas and assigns their ids.
Start at `schema.parse`, then `compatibility.check`, then `values`.
"""
