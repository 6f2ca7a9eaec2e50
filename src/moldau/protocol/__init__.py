"""Kafka's wire protocol: messages of one shape per API, hot codecs, framing, record batches. No sockets."""
