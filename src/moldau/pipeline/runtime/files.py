"""The file operations that a checkpoint needs, for local folders; `spark` implements them for other file systems."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

__all__ = ["Files", "LocalFiles", "local_path"]


class Files(Protocol):
    """A file system, addressed by paths or URIs."""

    def read(self, path: str) -> str | None:
        """A file's text, or None if it does not exist."""

    def write(self, path: str, text: str) -> None:
        """Write a file atomically, and create its parent folders."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder; empty if it does not exist."""

    def delete(self, path: str) -> None:
        """Remove a file, or a folder with its contents, if it exists."""


class LocalFiles:
    """Files on this machine."""

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
    """The local folder of a path or `file:` URI; None for other file systems."""
    if "://" not in location and not location.startswith("file:"):
        return Path(location).expanduser().absolute()
    parts = urlsplit(location)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None
