"""Parsing of schema texts, and comparison of schemas in this process or in a separate one. Start at `parser`."""
