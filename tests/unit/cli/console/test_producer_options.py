"""Which producer property wins: single property, option, file, default."""

from __future__ import annotations

from pathlib import Path

from moldau.cli.console.producer_options import PARSER, producer_properties, reader_properties

BASE = ["--bootstrap-server", "localhost:9092", "--topic", "t"]


def properties(*words: str, is_interactive: bool = False) -> dict[str, str]:
    return producer_properties(PARSER.parse([*BASE, *words]), is_interactive=is_interactive)


def test_defaults_are_kafkas() -> None:
    found = properties()
    assert found["acks"] == "-1"
    assert found["linger.ms"] == "1000"
    assert found["compression.type"] == "none"
    assert found["client.id"] == "console-producer"


def test_who_types_does_not_wait_for_a_batch_to_fill() -> None:
    assert properties(is_interactive=True)["linger.ms"] == "5"
    assert properties("--timeout", "300", is_interactive=True)["linger.ms"] == "300"


def test_property_beats_option_beats_file_beats_default(tmp_path: Path) -> None:
    file = tmp_path / "producer.properties"
    file.write_text("acks=1\nbatch.size=100\nlinger.ms=7\n")
    from_file = ("--producer.config", str(file))
    assert properties(*from_file)["acks"] == "1"
    assert properties(*from_file, "--request-required-acks", "0")["acks"] == "0"
    assert properties(*from_file, "--request-required-acks", "0", "--producer-property", "acks=all")["acks"] == "all"
    assert properties(*from_file, "--batch-size", "9")["batch.size"] == "9"
    assert properties(*from_file)["linger.ms"] == "7"


def test_a_codec_without_a_name_is_gzip() -> None:
    assert properties("--compression-codec")["compression.type"] == "gzip"
    assert properties("--compression-codec", "zstd")["compression.type"] == "zstd"


def test_reader_properties_come_from_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "reader"
    file.write_text("parse.key=true\nkey.separator=:\n")
    parsed = PARSER.parse([*BASE, "--reader-config", str(file), "--property", "key.separator=,"])
    assert reader_properties(parsed) == {"parse.key": "true", "key.separator": ","}
