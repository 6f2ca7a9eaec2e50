"""Where connector tasks run: the loops around them, their clients, the Spark tasks that carry them. See `carrier`."""
