"""Offsets of partitions from the command line."""
