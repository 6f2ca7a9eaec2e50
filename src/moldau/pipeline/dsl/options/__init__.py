"""What may be said about an operator beside its function: names, serdes, stores, windows. Start at `named`."""
