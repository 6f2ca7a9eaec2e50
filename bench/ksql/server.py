"""The ksql server under measurement, as users start it, and requests to it. Start at `KsqlProcess`."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.brokers import end
from bench.machine import TICKS_PER_SECOND, Usage, usage_of
from moldau.pipeline.runtime.hosting.engine_files import EngineFiles

__all__ = ["KsqlProcess", "Session"]

STARTED = re.compile(r"ksql server started: (http://\S+)")
PATIENCE_S = 240.0


class Session:
    """One connection to the server, kept open."""

    def __init__(self, url: str) -> None:
        address = urllib.parse.urlsplit(url)
        assert address.hostname is not None
        self._connection = http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE_S)

    def statements(self, text: str, properties: dict[str, str] | None = None) -> list[dict[str, Any]]:
        """Carry out statements; what they answer."""
        body = {"ksql": text, "streamsProperties": {"auto.offset.reset": "earliest", **(properties or {})}}
        return self._post("/ksql", body)

    def rows(self, query: str) -> list[list[Any]]:
        """The rows of a query that ends; a push query reads its topics from their beginning."""
        body = {"ksql": query, "streamsProperties": {"auto.offset.reset": "earliest"} if "EMIT" in query else {}}
        return [one["row"]["columns"] for one in self._post("/query", body) if "row" in one]

    def close(self) -> None:
        self._connection.close()

    def _post(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        self._connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}: {text[:500].decode()}")
        found: list[dict[str, Any]] = json.loads(text)
        return found


class KsqlProcess:
    """`moldau ksql-server` in a folder of its own."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._log = folder, folder / "server.log"
        self._command = [sys.executable, "-m", "moldau.cli.main", "ksql-server", "--port", "0"]
        self._command += ["--bootstrap-server", bootstrap, "--data", str(folder)]
        self.url = ""

    def __enter__(self) -> KsqlProcess:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE_S
        while (found := STARTED.search(self._log.read_text(errors="replace"))) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the ksql server did not start: {self._log.read_text()[-2000:]}")
            time.sleep(0.1)
        self.url = found[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            print(self._log.read_text(errors="replace")[-3000:], file=sys.stderr)
        end(self._process)

    def own_cpu_s(self) -> float:
        """The CPU time of the server's process alone."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def usage(self) -> Usage:
        """What the server and its engine use."""
        own = usage_of(self._process.pid)
        address = EngineFiles(self._folder / "default_" / "engine").find()
        if address is None or self._is_child(address.pid):
            return own
        engine = usage_of(address.pid)
        return Usage(own.cpu_s + engine.cpu_s, own.resident_bytes + engine.resident_bytes)

    def _is_child(self, pid: int) -> bool:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[1]) == self._process.pid
