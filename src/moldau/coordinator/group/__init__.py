"""The group coordinator: membership, assignments and committed offsets, as decisions without I/O."""
