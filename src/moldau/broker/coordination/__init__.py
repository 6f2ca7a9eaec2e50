"""Groups and transactions: the shards of the coordinators on this broker. Start at `coordinators`."""
