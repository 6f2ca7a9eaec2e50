"""Commands that delete records."""
