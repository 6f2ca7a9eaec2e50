"""Groups of the classic protocol: members join, the leader assigns, all members sync. Start at `membership`."""
