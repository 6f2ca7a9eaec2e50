"""kafka-storage as a user types it."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

import pytest

from moldau.cli.storage.command import main
from moldau.cli.storage.scram import parse_credential
from moldau.controller.snapshots import decode_snapshot
from moldau.core.errors import InvalidConfigError
from moldau.core.ids import parse_uuid
from moldau.core.properties import parse_properties
from moldau.protocol.metadata_records import FeatureLevelRecord, UserScramCredentialRecord
from moldau.server.metadata_versions import features_at, level_of, name_of

CLUSTER = "bW9sZGF1LW9yYWNsZS0wMQ"


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\n"
        f"log.dirs={tmp_path}/a,{tmp_path}/b\n"
    )
    return str(path)


def test_every_directory_is_formatted_once(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["format", "-t", CLUSTER, "-c", config]) == 0
    assert capsys.readouterr().out == (
        f"Formatting metadata directory {tmp_path}/a with metadata.version 4.0-IV3.\n"
        f"Formatting data directory {tmp_path}/b with metadata.version 4.0-IV3.\n"
    )
    found = [parse_properties((tmp_path / name / "meta.properties").read_text()) for name in "ab"]
    assert [(each["version"], each["cluster.id"], each["node.id"]) for each in found] == [("1", CLUSTER, "1")] * 2
    assert len({parse_uuid(each["directory.id"]) for each in found}) == 2
    records = decode_snapshot((tmp_path / "a" / "bootstrap.checkpoint").read_bytes())
    assert records[0] == FeatureLevelRecord(name="metadata.version", feature_level=25)


def test_a_formatted_directory_is_refused_unless_told_otherwise(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["format", "-t", CLUSTER, "-c", config])
    capsys.readouterr()
    assert main(["format", "-t", CLUSTER, "-c", config]) == 1
    assert capsys.readouterr().err == (
        f"Log directory {tmp_path}/a is already formatted. Use --ignore-formatted to ignore this directory and "
        "format the others.\n"
    )
    assert main(["format", "--ignore-formatted", "-t", CLUSTER, "-c", config]) == 0
    assert capsys.readouterr().out == "All of the log directories are already formatted.\n"


def test_only_what_is_missing_is_formatted(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["format", "-t", CLUSTER, "-c", config])
    (tmp_path / "b" / "meta.properties").unlink()
    capsys.readouterr()
    assert main(["format", "-g", "-t", CLUSTER, "-c", config]) == 0
    assert capsys.readouterr().out == f"Formatting data directory {tmp_path}/b with metadata.version 4.0-IV3.\n"


def test_directories_of_another_cluster_are_refused(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["format", "-t", CLUSTER, "-c", config])
    assert main(["format", "-g", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", config]) == 1
    assert capsys.readouterr().err == (
        f"Invalid cluster.id in: {tmp_path}/a/meta.properties. Expected AAAAAAAAAAAAAAAAAAAAAQ, but read {CLUSTER}\n"
    )


def test_info_tells_directories_metadata_and_problems(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", "-c", config]) == 1
    assert capsys.readouterr().out == (
        f"Found problems:\n  {tmp_path}/a does not exist\n  {tmp_path}/b does not exist\n\n"
    )
    main(["format", "--standalone", "-t", CLUSTER, "-c", config])
    (tmp_path / "b" / "meta.properties").unlink()
    capsys.readouterr()
    assert main(["info", "-c", config]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == ["Found log directories:", f"  {tmp_path}/a", f"  {tmp_path}/b", ""]
    assert lines[4].startswith(f"Found metadata: {{cluster.id={CLUSTER}, directory.id=")
    assert lines[5:] == ["", "Found problem:", f"  {tmp_path}/b is not formatted.", ""]


def test_standalone_is_named_as_a_voter(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["format", "--standalone", "-t", CLUSTER, "-c", config])
    assert capsys.readouterr().out.startswith(f"Formatting dynamic metadata voter directory {tmp_path}/a with")


def test_a_random_id_is_22_characters_and_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["random-uuid"]) == 0
    shown = capsys.readouterr().out.strip()
    assert not shown.startswith("-")
    parse_uuid(shown)


def test_an_older_release_can_be_asked_for(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["format", "-r", "3.9", "-t", CLUSTER, "-c", config]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("with metadata.version 3.9-IV0.")
    records = decode_snapshot((tmp_path / "a" / "bootstrap.checkpoint").read_bytes())
    assert records == [FeatureLevelRecord(name="metadata.version", feature_level=21)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-r", "9.9"], "Unknown metadata.version '9.9'"),
        (["-f", "group.version=7"], "Feature level 7 is not supported for feature group.version"),
        (["-f", "nonsense=1"], "Unsupported feature: nonsense"),
        (["-f", "group.version"], "Can't parse feature=level string"),
        (["-S", "SCRAM-SHA-256=[password=x]"], "You must supply 'name'"),
        (["-I", "1@a:9093:x,2@b:9093:y"], "must name node 1 alone"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["format", "-t", CLUSTER, "-c", config, *arguments]) == 1
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "a").exists()


def test_missing_arguments_end_with_status_1_and_help_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 1
    assert main(["format"]) == 1
    assert main(["--help"]) == 0


def test_a_scram_user_is_there_from_the_beginning(config: str, tmp_path: Path) -> None:
    assert main(["format", "-t", CLUSTER, "-c", config, "-S", "SCRAM-SHA-256=[name=alice,password=secret]"]) == 0
    record = decode_snapshot((tmp_path / "a" / "bootstrap.checkpoint").read_bytes())[-1]
    assert isinstance(record, UserScramCredentialRecord)
    assert (record.name, record.mechanism, record.iterations) == ("alice", 1, 4096)


def test_scram_keys_follow_from_the_password_as_rfc_5802_says() -> None:
    record = parse_credential('SCRAM-SHA-512=[name=bob,iterations=8192,salt="N3E=",password=pencil]')
    salted = hashlib.pbkdf2_hmac("sha512", b"pencil", b"7q", 8192)
    assert record.salt == b"7q"
    assert record.server_key == hmac.new(salted, b"Server Key", "sha512").digest()
    assert record.stored_key == hashlib.sha512(hmac.new(salted, b"Client Key", "sha512").digest()).digest()


@pytest.mark.parametrize(
    "text",
    [
        "SCRAM-SHA-1=[name=a,password=b]",
        "SCRAM-SHA-256",
        "SCRAM-SHA-256=name=a",
        "SCRAM-SHA-256=[name=a]",
        "SCRAM-SHA-256=[name=a,password=b,iterations=1]",
        "SCRAM-SHA-256=[name=a,saltedpassword=YQ==]",
        'SCRAM-SHA-256=[name=a,salt="?",password=b]',
    ],
)
def test_half_a_credential_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfigError):
        parse_credential(text)


def test_levels_have_kafkas_names() -> None:
    assert [name_of(level) for level in (7, 14, 19, 21, 25, 30)] == [
        "3.3-IV3", "3.6-IV2", "3.7-IV4", "3.9-IV0", "4.0-IV3", "4.3-IV0",
    ]  # fmt: skip
    assert (level_of("4.0"), level_of("4.0.1"), level_of("3.5-IV1")) == (25, 25, 10)
    assert features_at(25).keys() >= {"kraft.version", "group.version"}
