"""SQL per row: typed expressions compiled to Python functions, and ksqlDB's built-in functions. Start at `rows`."""
