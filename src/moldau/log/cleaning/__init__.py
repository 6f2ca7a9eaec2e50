"""Compaction: which logs to clean, and how, in a process of its own. Start at `cleaner`."""
