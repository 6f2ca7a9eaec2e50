"""Statements of all other kinds: accepted, kept as commands, replayed, described. Start at `runner`."""
