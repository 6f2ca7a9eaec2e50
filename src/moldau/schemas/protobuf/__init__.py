"""Protobuf schemas: .proto texts, imports, descriptors and the rules of change. Start at `schema.parse_protobuf`."""
