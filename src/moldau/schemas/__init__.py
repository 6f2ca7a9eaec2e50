"""Schemas: what Avro, JSON Schema and Protobuf texts say, whether one may follow another, and values in their formats.

Pure: texts and bytes in, answers out. Who keeps schemas and gives them ids is `registry`'s business.
Start at `schema.parse`, then `compatibility.check`, then `values`.
"""
