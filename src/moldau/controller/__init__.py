"""The cluster's metadata: decisions become records, records become the image. Start at `controller`."""
