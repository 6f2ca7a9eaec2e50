"""The way to a cluster, as any stranger has it: librdkafka with Java's properties, and `wire` for the rest."""
