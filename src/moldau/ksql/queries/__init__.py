"""Push queries, pull queries and PRINT: what a client reads while it waits. Start at `open_queries`."""
