"""Decisions on requests that change the registry: pure functions from state and request to records and a reply.

A rejected request raises a `RegistryError`. Nothing is written here and no clock is read; `registry.registry` writes
the records and replies once they have been read back. Start at `decision.Decision`, then `register`.
"""
