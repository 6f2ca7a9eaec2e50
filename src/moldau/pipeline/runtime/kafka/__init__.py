"""Kafka as source and sink of pipelines: the cluster, the group, transactions. Start at `wiring`."""
