"""Spark's Java classes, loaded and verified once: an archive that the Java process maps instead of reading 200 jars.

Java calls it class data sharing. A start of Spark, and its first query, take about half as long with it. An archive
fits one Java and one set of jars, down to the time each was written, and is named after them; where it does not fit,
Java starts as if there were none. It is recorded by a Java process that runs pipelines and then ends, and takes the
place of those made for others: each has 180 MB. Start at `options_for_use`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moldau.pipeline.spark.driver.jars import cache_folder
from moldau.pipeline.spark.driver.java import found_java

__all__ = ["archive_file", "options_for_use", "recorded"]

SILENT = "-Xlog:disable"
"""Recording names every class that cannot be in an archive, hundreds of them."""
NO_COMPLAINTS = "-Xlog:cds*=off -Xlog:class+path*=off"
"""An archive that does not fit is no trouble of the user's."""


def options_for_use() -> str:
    """Java options that make use of the archive; none where there is none."""
    archive = archive_file()
    return f"-XX:SharedArchiveFile={archive} {NO_COMPLAINTS}" if archive.exists() else ""


def archive_file() -> Path:
    """Where the archive for this Java and these jars is, or would be."""
    return cache_folder().with_name("spark-classes") / f"{_fingerprint()}.jsa"


@contextmanager
def recorded() -> Iterator[str]:
    """Gives the options of a Java process that must start and end in the block, and then keeps what it has loaded."""
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
    """A Java process that has mapped one of them keeps it until its end, whatever becomes of the name."""
    stale = [one for one in archive.parent.glob("*.jsa") if one != archive]
    left = [one for one in archive.parent.glob("*.*.part") if not _is_being_written(one)]
    for file in (*stale, *left):
        file.unlink(missing_ok=True)


def _is_being_written(part: Path) -> bool:
    """Whether the process whose number is in the name is there; one that was killed could not remove its file."""
    number = part.suffixes[-2].removeprefix(".")
    return Path("/proc", number).exists()


def _fingerprint() -> str:
    facts = (
        found_java().description,
        *_facts_about_jars(_pyspark_folder() / "jars"),
        *_facts_about_jars(cache_folder()),
    )
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _facts_about_jars(folder: Path) -> Iterator[str]:
    """What Java compares: a PySpark that is installed again, at the same place, has jars of another time."""
    for jar in sorted(folder.glob("*.jar")):
        found = jar.stat()
        yield f"{jar} {found.st_size} {found.st_mtime_ns}"


def _pyspark_folder() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent
