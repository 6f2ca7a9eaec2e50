"""kafka-verifiable-producer and kafka-verifiable-consumer: everything that happens, as lines of JSON."""
