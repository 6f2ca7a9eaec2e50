"""Settings whose values are kept in the environment, in other files or in folders of secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.core.config.providers import substitute_variables
from moldau.core.errors import InvalidConfigError


def test_nothing_is_filled_in_unless_a_provider_is_named() -> None:
    settings = {"ssl.key.password": "${env:PASSWORD}"}
    assert substitute_variables(settings, {"PASSWORD": "hush"}) == settings


def test_the_environment_files_and_folders_are_asked(tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("key.password=from file\n")
    (tmp_path / "token").write_text("from folder")
    filled = substitute_variables(
        {
            "config.providers": "env,file,dir",
            "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
            "log.dirs": "${env:DATA}/a,${env:DATA}/b",
            "ssl.key.password": f"${{file:{tmp_path}/secrets.properties:key.password}}",
            "ssl.keystore.key": f"${{dir:{tmp_path}:token}}",
            "broker.rack": "${vault:x}",
        },
        {"DATA": "/data"},
    )
    assert filled["log.dirs"] == "/data/a,/data/b"
    assert filled["ssl.key.password"] == "from file"
    assert filled["ssl.keystore.key"] == "from folder"
    assert filled["broker.rack"] == "${vault:x}"


@pytest.mark.parametrize(
    ("value", "words"),
    [("${env:NOPE}", "NOPE"), ("${file:/no/such:key}", "No such file"), ("${dir:/tmp:../etc/passwd}", "not the name")],
)
def test_what_no_provider_knows_stops_the_start(value: str, words: str) -> None:
    with pytest.raises(InvalidConfigError) as refused:
        substitute_variables({"config.providers": "env,file,dir", "broker.rack": value}, {})
    assert words in str(refused.value)
    assert str(refused.value).startswith("broker.rack: ")


def test_a_provider_of_an_unknown_kind_is_refused() -> None:
    settings = {"config.providers": "vault", "config.providers.vault.class": "com.example.VaultProvider"}
    with pytest.raises(InvalidConfigError, match="not a provider known here"):
        substitute_variables(settings, {})
