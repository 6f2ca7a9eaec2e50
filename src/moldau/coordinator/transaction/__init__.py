"""The transaction coordinator's core: the transactions and their state transitions. Start at `core`."""
