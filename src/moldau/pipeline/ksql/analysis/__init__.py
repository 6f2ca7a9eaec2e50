"""What a query means, before it is planned: its sources, columns, names and keys. Start at `query_analysis`."""
