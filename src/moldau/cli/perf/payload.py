"""The values that a performance test sends: random letters, increasing numbers, or parts of a file."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path

from moldau.cli.tool import ToolError

__all__ = ["Payloads"]

LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Payloads:
    """An endless source of values; `average_size` is used to compute rates in bytes."""

    def __init__(self, values: list[bytes] | None, average_size: float) -> None:
        self._values = values
        self._numbers = count()
        self._random = random.Random(0)
        self.average_size = average_size

    @classmethod
    def of_size(cls, size: int) -> Payloads:
        """One random value, the same for every record, as in Kafka's tool."""
        if size <= 0:
            raise ToolError(f"--record-size must be positive, not {size}")
        return cls([bytes(random.Random(0).choices(LETTERS, k=size))], size)

    @classmethod
    def from_file(cls, location: str, delimiter: str) -> Payloads:
        """For each record, a random part of the file, split at the delimiter."""
        try:
            text = Path(location).read_bytes()
        except OSError as error:
            raise ToolError(f"cannot read {location}: {error.strerror}") from None
        pieces = [piece for piece in text.split(delimiter.encode().decode("unicode_escape").encode()) if piece]
        if not pieces:
            raise ToolError(f"File does not exist or empty file provided: {location}")
        return cls(pieces, sum(map(len, pieces)) / len(pieces))

    @classmethod
    def monotonic(cls) -> Payloads:
        return cls(None, 8)

    @property
    def only(self) -> bytes | None:
        """The value, if it is the same for every record, else None."""
        return self._values[0] if self._values is not None and len(self._values) == 1 else None

    def next(self) -> bytes:
        if self._values is None:
            return str(next(self._numbers)).encode()
        return self._values[self._random.randrange(len(self._values))]
