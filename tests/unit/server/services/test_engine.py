"""The engine process' command line."""

from __future__ import annotations

from pathlib import Path

from moldau.server.services.engine import options_of


def test_settings_of_spark_may_follow_options() -> None:
    options = options_of(
        ["/state", "--threads", "64", "--tasks-per-carrier", "2", "spark.master=local[2]", "spark.a=b"]
    )
    assert (options.folder, options.threads, options.tasks_per_carrier) == (Path("/state"), 64, 2)
    assert options.settings == ["spark.master=local[2]", "spark.a=b"]
