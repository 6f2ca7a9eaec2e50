"""The few things done to files of a checkpoint, here on local folders; Spark brings them for other file systems."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

__all__ = ["Files", "LocalFiles", "local_path"]


class Files(Protocol):
    """A file system, by paths or URIs."""

    def read(self, path: str) -> str | None:
        """A file's text, or None where there is none."""

    def write(self, path: str, text: str) -> None:
        """Put a file in place as a whole, with the folders above it."""

    def names(self, folder: str) -> list[str]:
        """What a folder holds; nothing where there is none."""

    def delete(self, path: str) -> None:
        """Remove a file or a folder with all it holds, if it is there."""


class LocalFiles:
    """Files of this machine."""

    def read(self, path: str) -> str | None:
        try:
            return Path(path).read_text()
        except FileNotFoundError:
            return None

    def write(self, path: str, text: str) -> None:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        with part.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)

    def names(self, folder: str) -> list[str]:
        try:
            return os.listdir(folder)
        except FileNotFoundError:
            return []

    def delete(self, path: str) -> None:
        target = Path(path)
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)


def local_path(location: str) -> Path | None:
    """The folder that a path or a `file:` URI means; None for other file systems."""
    if "://" not in location and not location.startswith("file:"):
        return Path(location).expanduser().absolute()
    parts = urlsplit(location)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None
