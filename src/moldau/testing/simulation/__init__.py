"""Deterministic simulation: one clock, one seeded network, disks that lose what was not synced. Start at `kernel`."""
