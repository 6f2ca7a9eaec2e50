"""The process that Spark runs in: Java, jars, the session, its folders and files. Start at `session`."""
