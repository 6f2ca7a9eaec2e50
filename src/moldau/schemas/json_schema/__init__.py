"""JSON Schema: drafts, references, shapes and compatibility rules. Start at `schema.parse_json_schema`."""
