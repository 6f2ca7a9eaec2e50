"""Aggregations by key and by window, and the suppression of their intermediate results. Start at `aggregation`."""
