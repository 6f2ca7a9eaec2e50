"""The state of tasks, which survives batches and restarts: stores over a backend of bytes. Start at `store`."""
