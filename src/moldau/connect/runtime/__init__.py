"""Where connector tasks run: loops around tasks, their clients, and the Spark tasks that carry them. Start at `carrier`."""
