"""Aggregations, by key and by window, and holding their results back. Start at `aggregation`."""
