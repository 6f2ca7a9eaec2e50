"""Aggregate functions: initial state, add, undo, merge, result. Start at `numbers`."""
