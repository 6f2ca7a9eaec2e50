"""kafka-verifiable-producer and kafka-verifiable-consumer: clients that print each event as a line of JSON."""
