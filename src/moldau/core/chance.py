"""A private random generator: a broker embedded in a program does not disturb the program's seeded `random`."""

from __future__ import annotations

import random

__all__ = ["CHANCE"]

CHANCE = random.Random()
"""Seeded by the operating system."""
