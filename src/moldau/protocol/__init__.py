"""Kafka's wire protocol: messages of one shape per API, codecs for hot paths, framing, record batches. No sockets."""
