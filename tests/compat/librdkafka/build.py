"""librdkafka's test-runner, built from the source that the crate `rdkafka-sys` carries.

Nothing of it enters the repository: cargo fetches the crate into the cache and make builds it there, unoptimised,
because the tests wait far more than they compute (44 s instead of 89 s on two cores). One expression is changed in the
copy: a test that asks for three replicas gets one, since here one broker runs alone. Start at `built`.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.compat.brokers import cache_folder

__all__ = ["CRATE_VERSION", "SOURCE", "VERSION", "built", "is_built", "missing_tools"]

CRATE_VERSION = "4.10.0"
VERSION = "2.12.1"
SOURCE = cache_folder(f"librdkafka-{VERSION}-one-broker")

THREE_REPLICAS = "rd_kafka_NewTopic_new(topicname, partition_cnt, replication_factor,"
ONE_REPLICA = "rd_kafka_NewTopic_new(topicname, partition_cnt, replication_factor > 1 ? 1 : replication_factor,"

MANIFEST = f"""\
[package]
name = "fetch"
version = "0.0.0"
edition = "2021"

[dependencies]
rdkafka-sys = "={CRATE_VERSION}"
"""


def is_built() -> bool:
    return (SOURCE / "tests" / "test-runner").exists()


def missing_tools() -> list[str]:
    """What building needs and this machine lacks."""
    return [tool for tool in ("cargo", "make", "gcc", "g++") if shutil.which(tool) is None]


def built() -> Path:
    """Return librdkafka's source folder with the test-runner built in it, fetching and building it if need be."""
    if is_built():
        return SOURCE
    missing = missing_tools()
    if missing:
        raise RuntimeError(
            f"building librdkafka's tests needs {', '.join(missing)} (Debian: apt-get install cargo g++ make)"
        )
    part = SOURCE.with_name(f"{SOURCE.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    _fetch(part)
    _make_fit_for_one_broker(part / "tests" / "test.c")
    _run(part, "./configure", "--disable-optimization", "--disable-curl")
    _run(part, "make", "-j2", "libs")
    _run(part, "make", "-j2", "-C", "tests", "build")
    part.rename(SOURCE)
    return SOURCE


def _fetch(target: Path) -> None:
    project = target.with_name(f"{target.name}.cargo")
    shutil.rmtree(project, ignore_errors=True)
    (project / "src").mkdir(parents=True)
    (project / "src" / "lib.rs").touch()
    (project / "Cargo.toml").write_text(MANIFEST)
    _run(project, "cargo", "vendor", "--quiet", "vendor")
    (project / "vendor" / "rdkafka-sys" / "librdkafka").rename(target)
    shutil.rmtree(project)


def _make_fit_for_one_broker(helpers: Path) -> None:
    text = helpers.read_text()
    if text.count(THREE_REPLICAS) != 1:
        raise RuntimeError(f"{helpers} no longer creates topics where it did; look again at {__file__}")
    helpers.write_text(text.replace(THREE_REPLICAS, ONE_REPLICA))


def _run(folder: Path, *command: str) -> None:
    done = subprocess.run(
        ["nice", *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed in {folder}:\n{done.stdout[-3000:]}")
