"""The jars of Spark's Kafka connector: fetched once into the cache, by Maven coordinates, and checked.

PySpark brings Apache Ivy, which knows Maven's central repository, so a Java runtime is all that fetching takes.
Versions and checksums are in `jars.lock`. Start at `fetched`.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.compat.brokers import cache_folder

__all__ = ["LOCK", "Jar", "fetched", "locked"]

LOCK = Path(__file__).with_name("jars.lock")


class Jar(NamedTuple):
    """One line of the lock file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


def locked() -> list[Jar]:
    lines = (line.partition("#")[0].split() for line in LOCK.read_text().splitlines())
    return [Jar(*words) for words in lines if words]


def fetched() -> list[Path]:
    """Return the jars' paths; those that the cache lacks are fetched first."""
    folder = cache_folder("spark-jars")
    folder.mkdir(parents=True, exist_ok=True)
    return [_fetched(jar, folder) for jar in locked()]


def _fetched(jar: Jar, folder: Path) -> Path:
    path = folder / jar.file_name
    if not path.exists():
        part = path.with_suffix(".part")
        _retrieve(jar, part)
        found = hashlib.sha256(part.read_bytes()).hexdigest()
        if found != jar.sha256:
            part.unlink()
            raise RuntimeError(f"{jar.file_name} has SHA-256 {found}, and {LOCK.name} says {jar.sha256}")
        part.rename(path)
    return path


def _retrieve(jar: Jar, target: Path) -> None:
    pattern = str(target.with_name("[artifact]-[revision].part"))
    arguments = ["-notransitive", "-types", "jar", "-confs", "default", "-cache", str(cache_folder("ivy"))]
    done = subprocess.run(
        ["java", "-jar", str(_ivy()), "-dependency", *jar[:3], *arguments, "-retrieve", pattern],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode or not target.exists():
        raise RuntimeError(f"{jar.file_name} could not be fetched:\n{done.stdout[-3000:]}")


def _ivy() -> Path:
    import pyspark

    return next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
