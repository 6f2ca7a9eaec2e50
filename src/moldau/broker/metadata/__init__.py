"""Applying changes of the cluster metadata, and requesting them. Start at `metadata_publisher`."""
