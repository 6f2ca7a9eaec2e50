"""Groups of the consumer protocol (KIP-848): the coordinator assigns the partitions. Start at `membership`."""
