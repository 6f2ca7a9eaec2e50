"""The Java runtime that Spark needs: where it is, its version, and what to do if there is none.

Start at `find_java`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

from moldau.core.errors import MoldauError

__all__ = ["OLDEST", "Java", "JavaMissingError", "find_java"]

OLDEST = 17
"""Spark 4 runs on Java 17 and newer."""

PATIENCE_S = 30


class JavaMissingError(MoldauError):
    """There is no Java runtime that Spark can use."""


class Java(NamedTuple):
    """A Java runtime: the command that starts it, its major version, and its full version output."""

    command: str
    version: int
    description: str


def find_java() -> Java:
    """The runtime that Spark will use: `JAVA_HOME`'s, else the first on the path.

    Raises `JavaMissingError` if there is none, or none new enough.
    """
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if command is None or (home and not Path(command).exists()):
        where = f"JAVA_HOME is {home}, and there is no bin/java in it" if home else "no `java` is on the path"
        raise JavaMissingError(f"Spark needs Java {OLDEST} or newer, and {where}; {_advice()}")
    description = _description(command)
    version = _version(command, description)
    if version < OLDEST:
        raise JavaMissingError(f"Spark needs Java {OLDEST} or newer, and {command} is Java {version}; {_advice()}")
    return Java(command, version, description)


@cache
def _description(command: str) -> str:
    """The version output, cached in the process: starting Java takes a tenth of a second even for this."""
    try:
        done = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissingError(f"{command} cannot be run: {error}; {_advice()}") from None
    return done.stderr + done.stdout


def _version(command: str, description: str) -> int:
    # Up to Java 8 the version is written 1.8.
    match = re.search(r'version "(?:1\.)?(\d+)', description)
    if match is None:
        raise JavaMissingError(f"{command} does not report its version ({description.strip()[:200]}); {_advice()}")
    return int(match.group(1))


def _advice() -> str:
    return "install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) or point JAVA_HOME to one"
