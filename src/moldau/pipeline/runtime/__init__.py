"""Running pipelines: starting, watching, restarting and stopping them. Start at `engine`."""
