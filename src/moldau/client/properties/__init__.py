"""Java client properties: translated for librdkafka, with key stores and JAAS lines."""
