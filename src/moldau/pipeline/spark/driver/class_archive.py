"""An archive of Spark's loaded and verified Java classes, which the Java process maps instead of reading 200 jars.

Java calls it class data sharing. It halves the time of Spark's start and first query. An archive fits one Java and one
set of jars, including each jar's modification time, and is named after them; if it does not fit, Java starts without
it. It is recorded by a Java process that runs pipelines and then exits, and replaces the archives for other Javas or
jars: each takes 180 MB. Start at `options_for_use`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moldau.pipeline.spark.driver.jars import cache_folder
from moldau.pipeline.spark.driver.java import find_java

__all__ = ["archive_file", "options_for_use", "record_classes"]

SILENT = "-Xlog:disable"
"""Recording logs every class that cannot be archived, hundreds of them."""
NO_COMPLAINTS = "-Xlog:cds*=off -Xlog:class+path*=off"
"""Users need no warning about an archive that does not fit."""


def options_for_use() -> str:
    """Java options to use the archive; empty if there is none."""
    archive = archive_file()
    return f"-XX:SharedArchiveFile={archive} {NO_COMPLAINTS}" if archive.exists() else ""


def archive_file() -> Path:
    """The path of the archive for this Java and these jars, whether or not it exists."""
    return cache_folder().with_name("spark-classes") / f"{_fingerprint()}.jsa"


@contextmanager
def record_classes() -> Iterator[str]:
    """Yields the options of a Java process that must start and exit in the block; its classes are then archived."""
    archive = archive_file()
    archive.parent.mkdir(parents=True, exist_ok=True)
    part = archive.with_suffix(f".{os.getpid()}.part")
    try:
        yield f"-XX:ArchiveClassesAtExit={part} {SILENT}"
        if part.exists():
            part.replace(archive)
            _remove_others(archive)
    finally:
        part.unlink(missing_ok=True)


def _remove_others(archive: Path) -> None:
    """Remove archives for other jars. A Java process that has mapped one keeps it after the file is deleted."""
    stale = [one for one in archive.parent.glob("*.jsa") if one != archive]
    left = [one for one in archive.parent.glob("*.*.part") if not _is_being_written(one)]
    for file in (*stale, *left):
        file.unlink(missing_ok=True)


def _is_being_written(part: Path) -> bool:
    """Whether the process whose id is in the name still runs; a killed one could not remove its file."""
    number = part.suffixes[-2].removeprefix(".")
    return Path("/proc", number).exists()


def _fingerprint() -> str:
    facts = (
        find_java().description,
        *_facts_about_jars(_pyspark_folder() / "jars"),
        *_facts_about_jars(cache_folder()),
    )
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _facts_about_jars(folder: Path) -> Iterator[str]:
    """What Java compares: a PySpark that is reinstalled in the same place has jars with other modification times."""
    for jar in sorted(folder.glob("*.jar")):
        found = jar.stat()
        yield f"{jar} {found.st_size} {found.st_mtime_ns}"


def _pyspark_folder() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent
