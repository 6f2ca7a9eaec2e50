"""Replication of partitions: what a leader knows of its followers, and how followers fetch. Start at `leading`."""
