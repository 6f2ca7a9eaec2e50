"""The archive of Spark's classes: when it is used, and when one is kept."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from moldau.pipeline.spark.driver import class_archive, session
from moldau.pipeline.spark.driver.class_archive import NO_COMPLAINTS, archive_file, options_for_use, record_classes
from moldau.pipeline.spark.driver.jars import cache_folder
from moldau.pipeline.spark.driver.java import Java, JavaMissingError, find_java

CONNECTOR = Path("/cache/connector.jar")


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MOLDAU_CACHE", str(tmp_path))
    monkeypatch.setattr(class_archive, "find_java", lambda: Java("java", 17, "a Java of tests"))
    monkeypatch.setattr(session, "fetch_jars", lambda: [CONNECTOR])


def written_part(options: str) -> None:
    option = next(word for word in options.split() if word.startswith("-XX:ArchiveClassesAtExit="))
    Path(option.partition("=")[2]).write_text("classes")


def test_without_an_archive_java_starts_as_ever() -> None:
    assert options_for_use() == ""


def test_what_java_wrote_when_it_ended_is_used_from_then_on() -> None:
    with record_classes() as options:
        written_part(options)

    assert archive_file().read_text() == "classes"
    assert f"-XX:SharedArchiveFile={archive_file()}" in options_for_use()


def test_a_recording_that_failed_leaves_nothing() -> None:
    def failing() -> None:
        with record_classes() as options:
            written_part(options)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        failing()

    assert list(archive_file().parent.iterdir()) == []


def test_a_java_that_writes_no_archive_is_no_trouble() -> None:
    with record_classes():
        pass

    assert options_for_use() == ""


def test_a_new_archive_takes_the_place_of_those_for_another_java() -> None:
    stale = archive_file().with_name("another.jsa")
    stale.parent.mkdir()
    stale.write_text("other classes")

    with stale.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        with record_classes() as options:
            written_part(options)
        still_there = mapped[:]

    assert list(stale.parent.iterdir()) == [archive_file()]
    assert still_there == b"other classes"


def test_a_recording_that_failed_leaves_other_archives_alone() -> None:
    stale = archive_file().with_name("another.jsa")
    stale.parent.mkdir()
    stale.write_text("other classes")

    with record_classes():
        pass

    assert list(stale.parent.iterdir()) == [stale]


def test_what_another_process_is_writing_is_left_alone_until_it_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as other:
        part = archive_file().with_name(f"another.{other.pid}.part")
        part.parent.mkdir()
        part.write_text("half")
        with record_classes() as options:
            written_part(options)
        assert part.exists()

    with record_classes() as options:
        written_part(options)

    assert not part.exists()


def test_jars_that_are_written_again_need_an_archive_of_their_own() -> None:
    jar = cache_folder() / "connector.jar"
    jar.parent.mkdir()
    jar.write_text("classes")
    with record_classes() as options:
        written_part(options)
    assert options_for_use() != ""

    os.utime(jar, (0, 0))

    assert options_for_use() == ""


def test_java_says_nothing_about_an_archive_that_does_not_fit(tmp_path: Path) -> None:
    try:
        java = find_java().command
    except JavaMissingError as error:
        pytest.skip(str(error))
    jar, archive = tmp_path / "launcher.jar", tmp_path / "classes.jsa"
    shutil.copy(next(Path(pyspark.__file__).parent.glob("jars/spark-launcher_*.jar")), jar)
    program = ["-cp", str(jar), "org.apache.spark.launcher.Main"]
    subprocess.run(
        [java, f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:disable", *program], capture_output=True, check=False
    )
    assert archive.exists()
    os.utime(jar, (0, 0))

    use = [java, f"-XX:SharedArchiveFile={archive}"]
    complaints = subprocess.run([*use, *program], capture_output=True, check=False).stdout
    silent = subprocess.run([*use, *NO_COMPLAINTS.split(), *program], capture_output=True, check=False).stdout

    assert b"Unable to use shared archive" in complaints
    assert b"archive" not in silent


def test_the_options_of_a_user_are_kept_beside_the_archive() -> None:
    with record_classes() as options:
        written_part(options)

    settings = session.with_connector({"spark.master": "local[2]", "spark.driver.extraJavaOptions": "-Xss4m"})

    assert settings["spark.driver.extraJavaOptions"].startswith("-Xss4m -XX:SharedArchiveFile=")


def test_a_user_who_names_an_archive_gets_that_one() -> None:
    with record_classes() as options:
        written_part(options)
    theirs = "-XX:SharedArchiveFile=/mine.jsa"

    settings = session.with_connector({"spark.master": "local[2]", "spark.driver.extraJavaOptions": theirs})

    assert settings["spark.driver.extraJavaOptions"] == theirs


def test_on_one_machine_the_connector_is_on_the_class_path() -> None:
    settings = session.with_connector({"spark.master": "local[2]", "spark.driver.extraClassPath": "/mine.jar"})

    assert settings["spark.driver.extraClassPath"] == f"{CONNECTOR}:/mine.jar"
    assert "spark.jars" not in settings


def test_a_cluster_is_sent_the_connector() -> None:
    settings = session.with_connector({"spark.master": "spark://host:7077", "spark.jars": "/mine.jar"})

    assert settings["spark.jars"] == f"{CONNECTOR},/mine.jar"
    assert "spark.driver.extraClassPath" not in settings
