"""Single message transforms and predicates, as Kafka ships them. Start at `chain`."""
