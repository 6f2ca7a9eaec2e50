"""The ksql server: statements over HTTP, kept in a topic; persistent, push and pull queries. Start at `server`."""
