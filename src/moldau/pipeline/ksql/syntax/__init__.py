"""The syntax of statements: tokens, the parser, the tree it gives, and the printer. Start at `parser`."""
