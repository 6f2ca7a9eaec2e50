"""kafka-replay-log-producer: a topic copied into another."""
