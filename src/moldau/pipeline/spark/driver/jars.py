"""The jars of Spark's Kafka connector: downloaded once into a cache, by Maven coordinates, and verified.

PySpark includes Apache Ivy, which can use Maven's central repository, so only a Java runtime is needed to download.
Versions and checksums are in `jars.lock` beside this file. Start at `fetch_jars`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from moldau.core.errors import MoldauError
from moldau.pipeline.spark.driver.java import find_java

__all__ = ["LOCK", "Jar", "JarsMissingError", "cache_folder", "fetch_jars", "locked_jars", "missing"]

LOCK = Path(__file__).with_name("jars.lock")
PATIENCE_S = 300


class JarsMissingError(MoldauError):
    """Spark's Kafka connector is not in the cache and could not be downloaded."""


class Jar(NamedTuple):
    """One line of the lock file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def locked_jars() -> list[Jar]:
    """The jars in the lock file."""
    lines = (line.partition("#")[0].split() for line in LOCK.read_text().splitlines())
    return [Jar(*words) for words in lines if words]


def cache_folder() -> Path:
    """The folder of the jars: `$MOLDAU_CACHE/spark-jars`, by default in the user's cache folder."""
    return Path(os.environ.get("MOLDAU_CACHE") or Path.home() / ".cache" / "moldau") / "spark-jars"


def missing() -> list[Jar]:
    """The jars that are not in the cache, or have another checksum there."""
    return [jar for jar in locked_jars() if not _is_good(cache_folder() / jar.file_name, jar)]


def fetch_jars() -> list[Path]:
    """The verified paths of the jars; missing ones are downloaded first.

    Raises `JarsMissingError` with the reason if that fails, and `JavaMissingError` if there is no Java to download
    with.
    """
    folder = cache_folder()
    if missing():
        with _alone_in(folder):
            for jar in missing():
                _fetch(jar, folder)
    return [folder / jar.file_name for jar in locked_jars()]


def _fetch(jar: Jar, folder: Path) -> None:
    part = folder / f"{jar.artifact}-{jar.version}.part"
    _retrieve(jar, part)
    found = _sha256(part)
    if found != jar.sha256:
        part.unlink()
        raise JarsMissingError(
            f"{jar.coordinates} was downloaded with SHA-256 {found}, but {LOCK.name} expects {jar.sha256}; the "
            "file was deleted. Check the proxies and mirrors between this machine and Maven's central repository"
        )
    part.replace(folder / jar.file_name)


def _retrieve(jar: Jar, target: Path) -> None:
    target.unlink(missing_ok=True)
    pattern = str(target.with_name("[artifact]-[revision].part"))
    wanted = ["-dependency", jar.group, jar.artifact, jar.version, "-notransitive", "-types", "jar"]
    places = ["-confs", "default", "-cache", str(target.parent.parent / "ivy"), "-retrieve", pattern]
    command = [find_java().command, "-jar", str(_ivy()), *wanted, *places]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        raise _fetch_error(jar, target, f"no answer within {PATIENCE_S} s") from None
    if done.returncode or not target.exists():
        raise _fetch_error(jar, target, _reason(done.stdout + done.stderr))


def _fetch_error(jar: Jar, target: Path, reason: str) -> JarsMissingError:
    return JarsMissingError(
        f"{jar.coordinates}, a part of Spark's Kafka connector, could not be fetched: {reason}. Allow this "
        f"machine to connect to Maven's central repository, or put {jar.file_name} into {target.parent} by hand"
    )


def _reason(output: str) -> str:
    """The most informative line of Ivy's output."""
    lines = [line.strip(" :\t") for line in output.splitlines() if line.strip(" :\t")]
    telling = [line for line in lines if any(word in line.lower() for word in ("error", "unresolved", "not found"))]
    return (telling or lines or ["Ivy said nothing"])[0][:300]


def _ivy() -> Path:
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise JarsMissingError(f"PySpark is not installed for {sys.executable}; install it with: pip install pyspark")
    return next((Path(found.origin).parent / "jars").glob("ivy-*.jar"))


def _is_good(path: Path, jar: Jar) -> bool:
    return path.exists() and _sha256(path) == jar.sha256


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """A lock, so that two processes that start at once share one download."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise JarsMissingError(
            f"the jars' cache {folder} cannot be used: {error.strerror}; set MOLDAU_CACHE to a folder of yours"
        ) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
