"""The metadata quorum's core: elections, replication, voter changes. Pure decisions, no I/O. Start at `core`."""
