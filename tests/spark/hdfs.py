"""A Hadoop file system on this machine: a name node and a data node, each a process, for state that lies elsewhere.

Its jar, 56 MB, is fetched once into the cache. Start at `Hdfs`.
"""

from __future__ import annotations

import hashlib
import socket
import subprocess
from pathlib import Path
from types import TracebackType

import pyspark
from tests.spark.spark_cluster import until

from moldau.pipeline.spark.jars import cache_folder
from moldau.pipeline.spark.java import found_java

__all__ = ["Hdfs"]

ARTIFACT, VERSION = "hadoop-client-minicluster", "3.5.0"
"""The version of the client that PySpark brings."""

SHA256 = "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c"
NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
FETCH_S = 300
_JARS = Path(pyspark.__file__).parent / "jars"


class Hdfs:
    """Running within the block; `url` is its root. `folder` gets logs, settings and blocks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.url = ""

    def __enter__(self) -> Hdfs:
        jar = _fetched()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._configure(_free_port())
        self._command = [found_java().command, "-Xmx256m", "-XX:TieredStopAtLevel=1"]
        self._command += ["-cp", f"{self._folder}:{jar}:{_JARS}/*"]
        with (self._folder / "format.log").open("wb") as log:
            subprocess.run([*self._command, NAME_NODE, "-format"], stdout=log, stderr=log, check=True)
        try:
            self._spawn("name-node", NAME_NODE)
            self._spawn("data-node", DATA_NODE)
            until(self._files_can_be_written)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def _files_can_be_written(self) -> bool:
        """Whether a data node holds a block for us: one that has only just come cannot yet."""
        shell = [*self._command, "org.apache.hadoop.fs.FsShell", "-put", "-f", str(self._folder / "core-site.xml"), "/"]
        return subprocess.run(shell, capture_output=True, check=False).returncode == 0

    def _configure(self, port: int) -> None:
        self.url = f"hdfs://127.0.0.1:{port}"
        _save(self._folder / "core-site.xml", {"fs.defaultFS": self.url, "hadoop.tmp.dir": f"{self._folder}/blocks"})
        addresses = ("namenode.http-address", "datanode.address", "datanode.http.address", "datanode.ipc.address")
        own = {"dfs.replication": "1", **{f"dfs.{name}": "127.0.0.1:0" for name in addresses}}
        _save(self._folder / "hdfs-site.xml", own)

    def _spawn(self, name: str, main: str) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(subprocess.Popen([*self._command, main], stdout=log, stderr=log))


def _fetched() -> Path:
    jar = cache_folder().parent / "hadoop" / f"{ARTIFACT}-{VERSION}.jar"
    if not jar.exists():
        ivy = [found_java().command, "-jar", str(next(_JARS.glob("ivy-*.jar"))), "-cache", str(jar.parent / "ivy")]
        what = ["-dependency", "org.apache.hadoop", ARTIFACT, VERSION, "-notransitive", "-types", "jar"]
        where = ["-confs", "default", "-retrieve", f"{jar.parent}/[artifact]-[revision].[ext]"]
        subprocess.run([*ivy, *what, *where], check=True, capture_output=True, timeout=FETCH_S)
    with jar.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SHA256, f"{jar} is not the file it should be"
    return jar


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _save(file: Path, properties: dict[str, str]) -> None:
    lines = [f"<property><name>{key}</name><value>{value}</value></property>" for key, value in properties.items()]
    file.write_text("\n".join(["<configuration>", *lines, "</configuration>"]))
