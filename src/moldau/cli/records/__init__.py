"""Deleting records from the command line."""
