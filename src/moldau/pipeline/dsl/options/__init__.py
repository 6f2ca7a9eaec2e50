"""The options of operators: names, serdes, stores, windows. Start at `named`."""
