"""kafka-replay-log-producer: copies a topic into another."""
