"""The `ksql` terminal: input, session, and the commands that are not SQL. Start at `loop.run_shell`."""
