"""Where files are: a local file system, HDFS over HTTP, or what pyarrow reaches by URL. Start at `open_storage`."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol
from urllib.parse import urlsplit

from moldau.connect.api.errors import ConnectError, RetriableError
from moldau.connect.api.limits import Limits
from moldau.connect.connectors.hdfs.webhdfs import SCHEMES, WebHdfsStorage

__all__ = ["Storage", "open_storage"]


class Storage(Protocol):
    """Files by paths relative to the store's root."""

    def create(self, path: str) -> IO[bytes]:
        """A new file to write to, with its folders."""
        ...

    def read(self, path: str) -> bytes:
        """A small file's content."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Give a file its name, in one step; replaces one that is there."""
        ...

    def delete_tree(self, path: str) -> None:
        """Delete a folder with all in it; it need not be there."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file; it need not be there."""
        ...

    def files(self, path: str) -> list[str]:
        """The names of all files below a folder; empty if it is not there."""
        ...


def open_storage(url: str, limits: Limits) -> Storage:
    """The store of `store.url`; raises `NotAllowedError` or `ConnectError`."""
    parts = urlsplit(url)
    if parts.scheme in ("", "file"):
        return LocalStorage(limits.check_path(parts.path if parts.scheme else url))
    if parts.scheme in SCHEMES:
        return WebHdfsStorage(url, limits)
    if parts.hostname is not None:
        limits.check_host(parts.hostname, parts.port)
    return ArrowStorage(url)


class LocalStorage:
    """Files of this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def create(self, path: str) -> IO[bytes]:
        full = self._root / path
        try:
            full.parent.mkdir(parents=True, exist_ok=True)
            return full.open("wb")
        except OSError as error:
            raise RetriableError(f"{full} cannot be written: {error.strerror}") from error

    def read(self, path: str) -> bytes:
        return (self._root / path).read_bytes()

    def rename(self, old: str, new: str) -> None:
        source, target = self._root / old, self._root / new
        target.parent.mkdir(parents=True, exist_ok=True)
        with source.open("rb") as written:
            os.fsync(written.fileno())
        source.replace(target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def delete_tree(self, path: str) -> None:
        top = self._root / path
        for folder, _, names in os.walk(top, topdown=False):
            for name in names:
                Path(folder, name).unlink(missing_ok=True)
            try:
                Path(folder).rmdir()
            except OSError:
                continue

    def delete(self, path: str) -> None:
        (self._root / path).unlink(missing_ok=True)

    def files(self, path: str) -> list[str]:
        return [name for _, _, names in os.walk(self._root / path) for name in names]


class ArrowStorage:
    """A file system that pyarrow knows by its URL, such as HDFS (which needs Hadoop's libhdfs on the machine)."""

    def __init__(self, url: str) -> None:
        from pyarrow import fs

        try:
            self._files, self._root = fs.FileSystem.from_uri(url)
        except Exception as error:
            advice = "; webhdfs://namenode:9870 needs no library of Hadoop" if url.startswith("hdfs:") else ""
            raise ConnectError(f"store.url {url} cannot be reached: {error}{advice}") from error
        self._types: Any = fs

    def _full(self, path: str) -> str:
        return str(PurePosixPath(self._root) / path)

    def create(self, path: str) -> IO[bytes]:
        full = self._full(path)
        try:
            self._files.create_dir(str(PurePosixPath(full).parent), recursive=True)
            stream: IO[bytes] = self._files.open_output_stream(full)
        except OSError as error:
            raise RetriableError(f"{full} cannot be written: {error}") from error
        return stream

    def read(self, path: str) -> bytes:
        with self._files.open_input_stream(self._full(path)) as stream:
            content: bytes = stream.read()
        return content

    def rename(self, old: str, new: str) -> None:
        target = self._full(new)
        self._files.create_dir(str(PurePosixPath(target).parent), recursive=True)
        self._files.move(self._full(old), target)

    def delete_tree(self, path: str) -> None:
        if self._files.get_file_info(self._full(path)).type == self._types.FileType.Directory:
            self._files.delete_dir(self._full(path))

    def delete(self, path: str) -> None:
        if self._files.get_file_info(self._full(path)).type == self._types.FileType.File:
            self._files.delete_file(self._full(path))

    def files(self, path: str) -> list[str]:
        selector = self._types.FileSelector(self._full(path), allow_not_found=True, recursive=True)
        return [one.base_name for one in self._files.get_file_info(selector) if one.is_file]
