"""Protobuf schemas: .proto texts, imports, descriptors and compatibility rules. Start at `schema.parse_protobuf`."""
