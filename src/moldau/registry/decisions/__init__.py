"""Requests that change the registry, decided: state and request in, records and reply out, or a refusal.

Nothing is written here and no clock is read; `registry.registry` writes the records and answers once they have been
read back. Start at `decision.Decision`, then `register`.
"""
