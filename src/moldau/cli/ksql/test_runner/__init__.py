"""`ksql-test-runner`: statements, records in and expected records out, without servers. Start at `command.main`."""
