"""The tasks of `pipeline.cores` inside Spark's Python workers. Start at `host`."""
