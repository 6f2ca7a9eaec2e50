"""The jars of the connector: what the lock file asks for, and what is told where they cannot be had."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest

from moldau.pipeline.spark.driver import jars
from moldau.pipeline.spark.driver.jars import Jar, JarsMissingError, fetch_jars, locked_jars, missing
from moldau.pipeline.spark.driver.java import JavaMissingError, find_java

CONTENT = b"a jar"


@pytest.fixture
def one_jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Jar:
    jar = Jar("group", "artifact", "1.0", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setenv("MOLDAU_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "locked_jars", lambda: [jar])
    return jar


def java_that(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    home = tmp_path / "java-home"
    (home / "bin").mkdir(parents=True)
    command = home / "bin" / "java"
    command.write_text(f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "17.0.1"\' >&2 && exit 0\n{script}\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(home))


def test_four_jars_are_locked() -> None:
    assert [jar.artifact for jar in locked_jars()] == [
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
        "kafka-clients",
        "commons-pool2",
    ]
    assert all(len(jar.sha256) == 64 for jar in locked_jars())


def test_what_is_in_the_cache_is_not_fetched_again(one_jar: Jar) -> None:
    folder = jars.cache_folder()
    folder.mkdir(parents=True)
    (folder / one_jar.file_name).write_bytes(CONTENT)

    assert missing() == []
    assert fetch_jars() == [folder / "artifact-1.0.jar"]


def test_a_jar_is_fetched_by_ivy(one_jar: Jar, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = jars.cache_folder() / "artifact-1.0.part"
    java_that(monkeypatch, tmp_path, f"printf '{CONTENT.decode()}' > {target}")

    assert fetch_jars()[0].read_bytes() == CONTENT
    assert not target.exists()


def test_another_checksum_is_not_accepted(one_jar: Jar, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java_that(monkeypatch, tmp_path, f"echo evil > {jars.cache_folder() / 'artifact-1.0.part'}")

    with pytest.raises(JarsMissingError, match=r"group:artifact:1\.0 was downloaded with SHA-256"):
        fetch_jars()
    assert missing() == [one_jar]


def test_a_spoilt_jar_counts_as_missing(one_jar: Jar) -> None:
    jars.cache_folder().mkdir(parents=True)
    (jars.cache_folder() / one_jar.file_name).write_bytes(b"half of it")

    assert missing() == [one_jar]


def test_without_a_way_to_the_repository_the_way_out_is_told(
    one_jar: Jar, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java_that(monkeypatch, tmp_path, "echo ':: UNRESOLVED DEPENDENCY: group#artifact;1.0: not found'; exit 1")

    with pytest.raises(
        JarsMissingError, match=r"not found\. Allow this machine to connect to .* or put artifact-1\.0\.jar into"
    ):
        fetch_jars()


def test_a_cache_that_cannot_be_made_is_told(one_jar: Jar, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MOLDAU_CACHE", str(tmp_path / "file"))

    with pytest.raises(JarsMissingError, match="set MOLDAU_CACHE"):
        fetch_jars()


def test_a_java_home_without_java_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(JavaMissingError, match="there is no bin/java in it"):
        find_java()


def test_no_java_at_all_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(JavaMissingError, match="apt-get install openjdk-17-jre-headless"):
        find_java()


@pytest.mark.parametrize(("said", "version"), [('version "1.8.0_292"', 8), ('version "11.0.2"', 11)])
def test_an_old_java_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, version: int) -> None:
    command = tmp_path / "bin" / "java"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\necho 'java {said}' >&2\n")
    command.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(JavaMissingError, match=f"is Java {version}"):
        find_java()
