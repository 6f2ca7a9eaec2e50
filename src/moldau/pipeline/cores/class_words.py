"""Settings that name a class of Kafka's: in full, by its last part, or in words with dashes between."""

from __future__ import annotations

__all__ = ["class_word"]


def class_word(given: object) -> str:
    """The class's own name in small letters, without packages, dashes and underscores."""
    return str(given).rpartition(".")[2].replace("-", "").replace("_", "").lower()
