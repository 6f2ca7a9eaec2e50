"""Joins of streams and tables. Start at `stream_table_join`."""
