"""A broker as part of a cluster: its life with the controller, and what it forwards there. Start at `lifecycle`."""
