"""Converters: data with schemas to and from the bytes of topics. Start at `json` and `plain`."""
