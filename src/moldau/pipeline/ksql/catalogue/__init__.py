"""What a server knows: sources, types, queries, and how statements may change them. Start at `catalogue`."""
