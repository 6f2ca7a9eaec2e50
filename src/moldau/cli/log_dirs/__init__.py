"""Commands for log directories."""
