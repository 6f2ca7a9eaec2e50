"""`moldau ksql-server`, `ksql-server-start`, and `ksql`, the terminal for statements."""
