"""What the `ksql` terminal shows: answers of the server as text. Pure; start at `statements.render_statement`."""
