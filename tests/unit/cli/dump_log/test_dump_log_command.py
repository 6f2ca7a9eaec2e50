"""kafka-dump-log as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.dump_log.command import main
from moldau.protocol.records import Record, encode_batch


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(encode_batch([Record(0, 0, b"k", b"hello")], base_timestamp=1_700_000_000_000))
    return path


def test_several_files_are_dumped_one_after_the_other(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = segment.with_suffix(".index")
    index.write_bytes(b"")
    assert main(["--files", f"{segment},{index}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"Dumping {segment}", "Log starting offset: 0"]
    assert lines[3:] == [f"Dumping {index}", f"{index} is empty."]


@pytest.mark.parametrize("option", ["--print-data-log", "--value-decoder-class", "--cluster-metadata-decoder"])
def test_a_decoder_means_that_data_is_printed(segment: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--files", str(segment), option]) == 0
    assert " payload: " in capsys.readouterr().out


def test_single_dashes_and_equals_signs_are_fine(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"-files={segment}", "-deep-iteration"]) == 0
    assert "| offset: 0" in capsys.readouterr().out


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--files", f"{tmp_path}/{0:020d}.log"]) == 1
    assert capsys.readouterr().err == f"{tmp_path}/{0:020d}.log: No such file or directory\n"


def test_files_have_to_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--print-data-log"]) == 1
    assert 'Missing required argument "[files]"' in capsys.readouterr().err


def test_java_classes_cannot_decode_here(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--files", str(segment), "--value-decoder-class", "com.example.Decoder"]) == 1
    assert "com.example.Decoder" in capsys.readouterr().err
