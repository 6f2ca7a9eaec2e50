"""Which files of a program go to a cluster's workers."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.pipeline.spark.driver.user_modules import pack_modules, source_files


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module, and a package with a module in it."""
    (tmp_path / "a_single_module.py").write_text("VALUE = 1\n")
    package = tmp_path / "a_package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "deep.py").write_text("VALUE = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ("a_single_module", "a_package")
    for name in names:
        importlib.import_module(name)
    yield tmp_path
    for name in names:
        del sys.modules[name]


def test_a_module_goes_alone_and_a_package_whole(program: Path) -> None:
    modules = [sys.modules["a_single_module"], sys.modules["a_package"]]

    assert set(source_files(modules, [])) == {"a_single_module.py", "a_package/__init__.py", "a_package/inner/deep.py"}


def test_what_is_installed_stays(program: Path) -> None:
    installed = [program, Path(json.__file__).parent]

    assert source_files([sys.modules["a_single_module"], sys.modules["a_package"], json, sys], installed) == {}


def test_modules_can_be_imported_from_the_archive(program: Path, tmp_path: Path) -> None:
    archive = tmp_path / "program.zip"
    archive.write_bytes(pack_modules(source_files([sys.modules["a_single_module"], sys.modules["a_package"]], [])))
    code = "import a_single_module; from a_package.inner.deep import VALUE; print(a_single_module.VALUE + VALUE)"

    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "3\n"


def test_the_same_modules_give_the_same_archive(program: Path) -> None:
    files = source_files([sys.modules["a_package"]], [])
    before = pack_modules(files)
    (program / "a_package" / "__init__.py").touch()

    assert pack_modules(dict(reversed(files.items()))) == before
