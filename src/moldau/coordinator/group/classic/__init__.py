"""Groups of the classic protocol: members join, their leader assigns, everybody syncs. Start at `membership`."""
