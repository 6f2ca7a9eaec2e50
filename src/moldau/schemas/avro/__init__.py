"""Avro schemas: types, parser, printer, defaults and compatibility rules. Start at `schema.parse_avro`."""
