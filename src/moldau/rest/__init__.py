"""The REST proxy: topics, records and consumer groups of a Kafka cluster over HTTP, in API versions 1, 2 and 3."""
