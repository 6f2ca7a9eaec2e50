"""Groups of the consumer protocol (KIP-848): the coordinator assigns, heartbeats do the rest. Start at `membership`."""
