"""Coordinators: who is in which group, what was committed, which transactions are open. Decided purely."""
