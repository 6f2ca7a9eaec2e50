"""Imports while no file descriptor is free: they use one that is held back for them.

The broker loads the code of an API at its first request, so that it starts fast. A module is read from a file; without
a descriptor the import would fail, and with it a request that needs none itself. Start at `keep_imports_possible`.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from types import ModuleType
from typing import TypeVar

__all__ = ["SpareDescriptor", "keep_imports_possible"]

Answer = TypeVar("Answer")


class SpareDescriptor:
    """A descriptor that is closed to make room for another. May be used by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spare: int | None = None

    def hold(self) -> None:
        """Open it, if it is not open; where no descriptor is free, the next call tries again."""
        with self._lock:
            if self._spare is None:
                try:
                    self._spare = os.open(os.devnull, os.O_RDONLY)
                except OSError:
                    pass

    def lend(self, call: Callable[[], Answer]) -> Answer:
        """What `call()` returns; if it fails for want of a descriptor, it is called again with room for one."""
        try:
            return call()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._give_up():
                raise
        try:
            return call()
        finally:
            self.hold()

    def _give_up(self) -> bool:
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None:
            os.close(spare)
        return spare is not None


_SPARE = SpareDescriptor()


class _Finder(FileFinder):
    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        return _SPARE.lend(lambda: super(_Finder, self).find_spec(fullname, target))


class _SourceLoader(SourceFileLoader):
    def get_data(self, path: str) -> bytes:
        return _SPARE.lend(lambda: super(_SourceLoader, self).get_data(path))


def keep_imports_possible() -> None:
    """From now on, Python modules of this process can be imported without a free descriptor."""
    _SPARE.hold()
    hook = _Finder.path_hook(
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (_SourceLoader, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )
    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()  # else folders that have been looked into keep the finder they had
