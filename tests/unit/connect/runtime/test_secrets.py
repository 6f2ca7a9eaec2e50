from __future__ import annotations

from pathlib import Path

import pytest

from moldau.connect.api.errors import ConfigError
from moldau.connect.runtime.secrets import Secrets


def test_references_are_resolved_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "s.properties"
    file.write_text("user=anna\npassword=s3cret word\n")
    (tmp_path / "token").write_text("abcdef")
    monkeypatch.setenv("DB_HOST", "db.example")
    config = {
        "url": "jdbc:postgresql://${env:DB_HOST}/x",
        "password": f"${{file:{file}:password}}",
        "token": f"${{directory:{tmp_path}:token}}",
        "table": "${topic}",
    }
    assert Secrets().resolve(config) == {
        "url": "jdbc:postgresql://db.example/x",
        "password": "s3cret word",
        "token": "abcdef",
        "table": "${topic}",
    }


def test_every_reference_that_cannot_be_resolved_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        Secrets().resolve({"a": "${env:NOT_THERE_AT_ALL}", "b": f"${{file:{tmp_path}/none:key}}"})
    assert [line.partition(":")[0] for line in raised.value.problems] == ["a", "b"]


def test_tasks_get_references_back_and_texts_hide_values(tmp_path: Path) -> None:
    file = tmp_path / "s.properties"
    file.write_text("password=s3cret word\n")
    secrets = Secrets()
    given = {"password": f"${{file:{file}:password}}", "plain": "x"}
    resolved = secrets.resolve(given)
    [task] = secrets.unresolve(given, [{**resolved, "url": "db?password=s3cret word"}])
    assert task == {**given, "url": f"db?password=${{file:{file}:password}}"}
    assert secrets.hide("login with s3cret word failed") == "login with [hidden] failed"


def test_a_worker_may_name_the_providers(tmp_path: Path) -> None:
    file = tmp_path / "s.properties"
    file.write_text("k=v\n")
    worker = {
        "config.providers": "vault",
        "config.providers.vault.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    assert Secrets(worker).resolve({"a": f"${{vault:{file}:k}}"}) == {"a": "v"}
