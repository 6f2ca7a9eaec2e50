"""Log directories from the command line."""
