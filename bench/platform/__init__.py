"""How fast `moldau up` is there, and what its services hold when idle. Start at `__main__`."""
