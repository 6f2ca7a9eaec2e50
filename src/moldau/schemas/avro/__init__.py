"""Avro schemas: types, parser, printer, defaults and the rules of resolution. Start at `schema.parse_avro`."""
