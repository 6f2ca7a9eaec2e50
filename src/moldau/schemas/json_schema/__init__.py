"""JSON Schema: drafts, references, shapes and the rules of change. Start at `schema.parse_json_schema`."""
