"""The transaction coordinator's core: which transactions there are and what may become of them. Start at `core`."""
