"""A program's own modules on their way to a cluster's workers, which see none of the driver's folders.

Functions of the main file travel by value. What they use from files beside it is imported by name, so those files are
packed into one archive that Spark hands to every executor. Installed packages stay where they are: workers have their
own. Start at `ship_modules`.
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

__all__ = ["packed", "ship_modules", "source_files"]

SAME_TIME = (1980, 1, 1, 0, 0, 0)
"""Of every file in an archive: the same modules give the same bytes."""


def ship_modules(spark: SparkSession) -> None:
    """Let workers import what this program has imported by now, as it is in its files."""
    from pyspark import SparkFiles

    files = source_files(sys.modules.values(), _installed())
    if not files:
        return
    data = packed(files)
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
    """Files to ship, by their place in an archive: a module's own, and of a package all that belong to it."""
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


def packed(files: Mapping[str, Path]) -> bytes:
    """An archive that Python can import from."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        # Packages without a file of their own are found only by an entry for their folder.
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


def _installed() -> set[Path]:
    """Where packages are that workers have of their own; moldau is one of them, however it got here."""
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {Path(paths[name]) for name in names} | {Path(site.getusersitepackages())}
    if moldau.__file__ is not None:
        folders.add(Path(moldau.__file__).parent)
    return {folder.absolute() for folder in folders} | {folder.resolve() for folder in folders}
