"""The cluster and its brokers from the command line."""
