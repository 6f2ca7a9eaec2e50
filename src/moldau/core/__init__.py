"""Vocabulary shared by every part: ids, error codes, clock, configuration keys. Standard library only."""
