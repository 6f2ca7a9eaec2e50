"""The SQL front end: statements in ksqlDB's language become nodes of `ir`. Start at `syntax.parser`."""
