"""From schema texts to parsed schemas, and comparing them, in this process or in one of its own. Start at `parser`."""
