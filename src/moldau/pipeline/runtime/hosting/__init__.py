"""Many pipelines in one process with one Spark driver, controlled over HTTP by other processes. Start at `host`."""
