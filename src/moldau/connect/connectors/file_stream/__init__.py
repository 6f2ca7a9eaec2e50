"""Lines of a text file to a topic, and values of topics to lines of a file. Start at `source`."""
