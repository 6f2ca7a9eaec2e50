"""Commands for the cluster and its brokers."""
