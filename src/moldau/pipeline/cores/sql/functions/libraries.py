"""Folders of modules with functions of users, read once and loaded in every process that plans or runs a query.

A folder becomes a `FunctionLibrary`, which is text, and travels with the calls of its functions. Where such a call is
compiled, `functions_of` loads the modules: each library is a package of its own, so that modules may import each other
(`from . import other`, or `from ._shared import helper`) and two libraries never meet. Start at `load_functions`.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import sys
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from moldau.pipeline.cores.sql.functions.builtin import BUILTIN
from moldau.pipeline.cores.sql.functions.registry import FunctionRegistry
from moldau.pipeline.cores.sql.functions.resolution import FunctionLookupError
from moldau.pipeline.cores.sql.functions.user import MARK, declare
from moldau.pipeline.ir.sql.libraries import FunctionLibrary

__all__ = ["functions_of", "load_functions", "read_library"]

PACKAGE = "moldau_sql_functions_"
_lock = threading.RLock()
_loaded: dict[str, FunctionLibrary] = {}
"""Libraries by the names of their packages."""


def load_functions(folder: Path) -> FunctionRegistry:
    """The built-in functions and those that the modules in a folder mark; raises `FunctionLookupError`."""
    return functions_of(read_library(folder))


def read_library(folder: Path) -> FunctionLibrary | None:
    """The modules in a folder as they are now; None if there are none."""
    files = sorted(folder.glob("*.py")) if folder.is_dir() else []
    if not files:
        return None
    try:
        return FunctionLibrary(str(folder), tuple((file.stem, file.read_text("utf-8")) for file in files))
    except (OSError, UnicodeDecodeError) as problem:
        raise FunctionLookupError(f"the functions in {folder} cannot be read: {problem}") from None


@lru_cache(maxsize=32)
def functions_of(library: FunctionLibrary | None) -> FunctionRegistry:
    """The built-in functions and those of a library; raises `FunctionLookupError` for a module that does not load."""
    if library is None:
        return BUILTIN
    registry = FunctionRegistry(BUILTIN, library)
    package = PACKAGE + library.digest
    with _lock:
        _loaded[package] = library
        for name, _ in library.modules:
            if not name.startswith("_"):
                _declare_module(registry, _import_module(package, name), f"{library.name}/{name}.py")
    return registry


def _import_module(package: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(f"{package}.{name}")
    except Exception as problem:
        raise FunctionLookupError(
            f"the functions in {name}.py cannot be loaded: {type(problem).__name__}: {problem}"
        ) from problem


def _declare_module(registry: FunctionRegistry, module: ModuleType, path: str) -> None:
    for value in vars(module).values():
        # A function that was imported from another module belongs to that one.
        if hasattr(value, MARK) and getattr(value, "__module__", None) == module.__name__:
            try:
                declare(registry, value, path)
            except FunctionLookupError as problem:
                file = Path(path).name
                raise FunctionLookupError(f"the functions in {file} cannot be loaded: {problem}") from None


class _LibraryFinder(importlib.abc.MetaPathFinder):
    """Finds the packages of libraries and their modules, which are in no file of this process."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.partition(".")
        library = _loaded.get(package)
        if library is None:
            return None
        if not name:
            return importlib.util.spec_from_loader(fullname, _TextLoader("", library.name), is_package=True)
        text = dict(library.modules).get(name)
        if text is None:
            return None
        return importlib.util.spec_from_loader(fullname, _TextLoader(text, f"{library.name}/{name}.py"))


class _TextLoader(importlib.abc.Loader):
    """Runs the text of a module."""

    def __init__(self, text: str, path: str) -> None:
        self._text, self._path = text, path

    def exec_module(self, module: ModuleType) -> None:
        # Tracebacks show the lines, although the file may not be on this machine.
        linecache.cache[self._path] = (len(self._text), None, self._text.splitlines(keepends=True), self._path)
        exec(compile(self._text, self._path, "exec"), vars(module))


sys.meta_path.append(_LibraryFinder())
