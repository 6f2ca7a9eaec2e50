"""The ksql server: statements over HTTP, kept in a command topic; persistent, push and pull queries. Start at `app`."""
