"""Commands for the offsets of partitions."""
