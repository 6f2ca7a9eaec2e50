"""Group and transaction coordinators: members, committed offsets, open transactions. Pure decisions, no I/O."""
