"""The demo of the whole platform: from a database to files and to a table over HTTP. Start at `command`."""
