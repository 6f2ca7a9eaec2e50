"""kafka-python's integration tests, from its source package, each in a pytest process of its own.

The package leaves out two small files of its test folder, which only matter when the suite starts brokers itself:
`BRIDGE` puts stand-ins into the unpacked copy. Start at `unpacked`, `tests_in` and `run`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

from tests.compat.brokers import AUTHORIZER, VERSIONS, Endpoint, cache_folder
from tests.compat.results import Outcome

__all__ = ["SETTINGS", "run", "tests_in", "unpacked"]

VERSION = version("kafka-python")
SOURCE = cache_folder(f"kafka-python-{VERSION}")

SETTINGS = {"num.partitions": "4", "node.id": "0", "group.min.session.timeout.ms": "500", **AUTHORIZER}
"""The suite places replicas on broker 0 by its number, and wants to see members time out soon."""

BRIDGE = {
    "__init__.py": "",
    "service.py": '''\
class ExternalService:
    """A broker that somebody else started."""

    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def dump_logs(self):
        pass

    def stop(self):
        pass


class SpawnedService:
    def __init__(self, *arguments, **options):
        raise RuntimeError("this copy of the suite runs on a broker that is there already")
''',
}
PYTEST = (sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider", "-q")


def unpacked() -> Path:
    """Return the folder of the unpacked source package of the version installed here, fetching it if need be."""
    if SOURCE.exists():
        return SOURCE
    part = SOURCE.with_name(f"{SOURCE.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    wanted = ["--no-deps", "--no-binary", ":all:", f"kafka-python=={VERSION}"]
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(part), *wanted], check=True)
    with tarfile.open(next(part.glob("*.tar.gz"))) as package:
        package.extractall(part, filter="data")
    folder = next(path for path in part.iterdir() if path.is_dir())
    for name, text in BRIDGE.items():
        target = folder / "test" / name
        if not target.exists():
            target.write_text(text)
    folder.rename(SOURCE)
    shutil.rmtree(part)
    return SOURCE


def tests_in(source: Path) -> list[str]:
    """The suite's tests by pytest's names, e.g. `test_producer_integration.py::test_end_to_end[gzip]`."""
    done = subprocess.run(
        [*PYTEST, "--collect-only", "test/integration"],
        cwd=source,
        env={**os.environ, "KAFKA_VERSION": VERSIONS["moldau"], "KAFKA_URI": "kafka://127.0.0.1:1"},
        capture_output=True,
        text=True,
        check=True,
    )
    prefix = "test/integration/"
    return [line.removeprefix(prefix) for line in done.stdout.splitlines() if line.startswith(prefix)]


def run(name: str, source: Path, endpoint: Endpoint, log: Path, *, timeout_s: float = 90) -> Outcome:
    """Run one test to its end or time-out; all it says goes to `log`."""
    environment = {
        **os.environ,
        "KAFKA_VERSION": endpoint.version,
        "KAFKA_URI": f"kafka://{endpoint.bootstrap}",
        "KAFKA_ROOT": str(endpoint.kafka_path),
    }
    with log.open("w") as output:
        try:
            done = subprocess.run(
                ["nice", *PYTEST, "-rs", f"test/integration/{name}"],
                cwd=source,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome.TIMEOUT
    return outcome_of(log.read_text(errors="replace"), done.returncode)


def outcome_of(output: str, return_code: int) -> Outcome:
    """pytest ends with 0 for a skipped test as well; its last line tells the two apart."""
    if return_code:
        return Outcome.FAIL
    summary = output.rstrip().rpartition("\n")[2]
    return Outcome.SKIP if "skipped" in summary and "passed" not in summary else Outcome.PASS
