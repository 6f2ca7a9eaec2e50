"""Following the cluster's metadata, and changing it. Start at `metadata_publisher`."""
