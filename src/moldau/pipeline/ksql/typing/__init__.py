"""From expressions as written to typed expressions: names, coercions, functions, type errors. Start at `typing`."""
