"""`ksql-migrations`: numbered files of statements, each applied once to a server. Start at `command.main`."""
