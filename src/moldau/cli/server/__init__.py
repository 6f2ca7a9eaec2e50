"""Commands that start and stop servers."""
