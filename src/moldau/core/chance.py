"""Random numbers of our own: a broker inside another program leaves the numbers that the program has seeded alone."""

from __future__ import annotations

import random

__all__ = ["CHANCE"]

CHANCE = random.Random()
"""Seeded by the operating system."""
