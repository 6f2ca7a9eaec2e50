"""The commit log: partitions as segments in Kafka's on-disk formats, retention, compaction, recovery."""
