from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.demo.command import main


@pytest.mark.parametrize("words", [[], ["etl"]])
def test_a_folder_that_cannot_be_used_is_one_line(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x")
    for data, message in (
        (tmp_path, f"{tmp_path} is not empty; name a new folder with --data"),
        (tmp_path / "file", f"{tmp_path}/file: File exists; name another with --data"),
        (tmp_path / "file" / "below", f"{tmp_path}/file/below: Not a directory; name another with --data"),
    ):
        assert main([*words, "--data", str(data)]) == 1
        assert capsys.readouterr().err == f"moldau: {message}\n"


@pytest.mark.parametrize("words", [["--rate", "0"], ["--rate", "x"], ["nonsense"]])
def test_a_slip_in_the_words_is_a_usage_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: moldau demo" in capsys.readouterr().err
