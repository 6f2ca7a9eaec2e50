"""The REST proxy under load; `scripts/bench-rest` runs it."""
