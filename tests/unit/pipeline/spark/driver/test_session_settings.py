"""A session's settings: ours, then the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.core.errors import InvalidConfigError
from moldau.pipeline.spark.driver import session
from moldau.pipeline.spark.driver.session import session_settings


def test_the_users_settings_win() -> None:
    settings = session_settings({"spark.driver.memory": "4g", "spark.foo": "bar", "application.id": "x"})

    assert (settings["spark.driver.memory"], settings["spark.foo"]) == ("4g", "bar")
    assert settings["spark.scheduler.mode"] == "FIFO"
    assert "application.id" not in settings


@pytest.mark.parametrize(("master", "slots"), [("local", 1), ("local[3]", 3), ("local[4,2]", 4)])
def test_there_are_as_many_state_partitions_as_threads(master: str, slots: int) -> None:
    assert session_settings({"spark.master": master})["spark.sql.shuffle.partitions"] == str(slots)


def test_threads_make_a_local_master() -> None:
    assert session_settings({}, threads=5)["spark.master"] == "local[5]"
    assert session_settings({"spark.master": "local[1]"}, threads=5)["spark.master"] == "local[1]"


def test_only_a_local_driver_hides_from_the_network() -> None:
    assert session_settings({})["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in session_settings({"spark.master": "spark://somewhere:7077"})


def test_no_threads_are_not_enough() -> None:
    with pytest.raises(InvalidConfigError, match="at least one thread"):
        session_settings({"spark.master": "local[0]"})


def test_java_ends_soon_whatever_options_it_is_given() -> None:
    key = "spark.driver.extraJavaOptions"

    assert session_settings({key: "-Xss4m"})[key] == "-Xss4m -Dspark.shutdown.timeout=5s"
    assert session_settings({})[key].endswith("-Dspark.shutdown.timeout=5s")
    theirs = "-Dspark.shutdown.timeout=60s"
    assert session_settings({key: theirs})[key] == theirs


def test_sockets_are_kept_where_their_paths_are_short_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "spark.python.unix.domain.socket.dir"
    long = tmp_path / ("n" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(long))
    settings: dict[str, str] = {}
    session._keep_sockets_elsewhere(settings)
    assert settings == {key: session.SHORT_FOLDER}

    # A folder that the user chose stays.
    settings = {key: "/run/mine"}
    session._keep_sockets_elsewhere(settings)
    assert settings == {key: "/run/mine"}

    # Without any such folder, ports take their place.
    monkeypatch.setattr(session, "SHORT_FOLDER", str(long))
    settings = {}
    session._keep_sockets_elsewhere(settings)
    assert settings == {"spark.python.unix.domain.socket.enabled": "false"}
