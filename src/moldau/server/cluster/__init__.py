"""Nodes of a cluster: how they find it, what they need to be part of it, brokers and controllers. Start at `part`."""
