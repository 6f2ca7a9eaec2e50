"""For services with several instances: group membership and leader election, and state kept in a compacted topic."""
