"""Sends a program's own modules to a cluster's workers, which do not share the driver's folders.

Functions of the main file are pickled by value. Modules that they use from files beside it are imported by name, so
those files are packed into one archive that Spark sends to every executor. Installed packages are not sent: workers
have their own. Start at `ship_modules`.
"""

from __future__ import annotations

import hashlib
import io
import site
import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import moldau

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["pack_modules", "ship_modules", "source_files"]

SAME_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of every file in an archive, so that the same modules give the same bytes."""


def ship_modules(spark: SparkSession) -> None:
    """Let workers import the modules that this program has imported so far, as they are on disk."""
    from pyspark import SparkFiles

    files = source_files(sys.modules.values(), _installed_folders())
    if not files:
        return
    data = pack_modules(files)
    name = f"moldau-program-{hashlib.sha256(data).hexdigest()[:16]}.zip"
    context = spark.sparkContext
    if name in (context._python_includes or ()):
        return
    # Executors fetch the file when they need it; Spark removes its folder when it stops.
    archive = Path(SparkFiles.getRootDirectory()) / "programs" / name
    archive.parent.mkdir(exist_ok=True)
    archive.write_bytes(data)
    context.addPyFile(str(archive))


def source_files(modules: Iterable[ModuleType], installed: Iterable[Path]) -> Mapping[str, Path]:
    """Files to send, by their path in the archive: a module's file, or all files of a package."""
    elsewhere = tuple(installed)
    found: dict[str, Path] = {}
    for module in list(modules):
        spec = getattr(module, "__spec__", None)
        if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
            continue
        file = Path(spec.origin).absolute()
        if not file.exists() or any(file.is_relative_to(folder) for folder in elsewhere):
            continue
        place = Path(*spec.name.split("."))
        if spec.submodule_search_locations is None:
            found[f"{place}.py"] = file
        else:
            found |= {str(place / one.relative_to(file.parent)): one for one in _sources(file.parent)}
    return found


def pack_modules(files: Mapping[str, Path]) -> bytes:
    """An archive that Python can import from."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        # Packages without an `__init__.py` are found only through an entry for their folder.
        for folder in sorted({f"{parent}/" for place in files for parent in Path(place).parents} - {"./"}):
            archive.writestr(zipfile.ZipInfo(folder, SAME_TIME), b"")
        for place in sorted(files):
            archive.writestr(zipfile.ZipInfo(place, SAME_TIME), files[place].read_bytes())
    return buffer.getvalue()


def _sources(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and not entry.name.startswith((".", "__pycache__")):
            yield from _sources(entry)
        elif entry.suffix == ".py":
            yield entry


def _installed_folders() -> set[Path]:
    """Folders of packages that workers have installed themselves; moldau is always one of them."""
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {Path(paths[name]) for name in names} | {Path(site.getusersitepackages())}
    if moldau.__file__ is not None:
        folders.add(Path(moldau.__file__).parent)
    return {folder.absolute() for folder in folders} | {folder.resolve() for folder in folders}
