"""A Hadoop file system on this machine: a name node and a data node, each a process, for state that lies elsewhere.

Its jar, 56 MB, is fetched once into the cache. Start at `Hdfs`.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pyspark
from tests.free_ports import free_port
from tests.spark.java_processes import JavaProcesses, small_java, until

from moldau.pipeline.spark.driver.jars import cache_folder
from moldau.pipeline.spark.driver.java import find_java

__all__ = ["Hdfs"]

ARTIFACT, VERSION = "hadoop-client-minicluster", "3.5.0"
"""The version of the client that PySpark brings."""

SHA256 = "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c"
NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
FETCH_S = 300
_JARS = Path(pyspark.__file__).parent / "jars"


class Hdfs(JavaProcesses):
    """Running within the block; `url` is its root. `folder` gets logs, settings and blocks."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.url = ""
        self.web_url = ""
        """The same over HTTP."""

    def begin(self) -> None:
        jar = _fetched()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._configure(free_port(), free_port())
        self._classes = ["-cp", f"{self.folder}:{jar}:{_JARS}/*"]
        assert self.spawn("format", [*self._classes, NAME_NODE, "-format"]).wait() == 0, self.log("format")
        self.spawn("name-node", [*self._classes, NAME_NODE])
        self.spawn("data-node", [*self._classes, DATA_NODE])
        until(self._files_can_be_written)

    def _files_can_be_written(self) -> bool:
        """Whether a data node holds a block for us: one that has only just come cannot yet."""
        put = ["org.apache.hadoop.fs.FsShell", "-put", "-f", str(self.folder / "core-site.xml"), "/"]
        return subprocess.run([*small_java(), *self._classes, *put], capture_output=True, check=False).returncode == 0

    def _configure(self, port: int, web_port: int) -> None:
        self.url, self.web_url = f"hdfs://127.0.0.1:{port}", f"webhdfs://127.0.0.1:{web_port}"
        _save(self.folder / "core-site.xml", {"fs.defaultFS": self.url, "hadoop.tmp.dir": f"{self.folder}/blocks"})
        addresses = ("datanode.address", "datanode.http.address", "datanode.ipc.address")
        own = {"dfs.replication": "1", **{f"dfs.{name}": "127.0.0.1:0" for name in addresses}}
        own["dfs.namenode.http-address"] = f"127.0.0.1:{web_port}"
        _save(self.folder / "hdfs-site.xml", own)


def _fetched() -> Path:
    jar = cache_folder().parent / "hadoop" / f"{ARTIFACT}-{VERSION}.jar"
    if not jar.exists():
        ivy = [find_java().command, "-jar", str(next(_JARS.glob("ivy-*.jar"))), "-cache", str(jar.parent / "ivy")]
        what = ["-dependency", "org.apache.hadoop", ARTIFACT, VERSION, "-notransitive", "-types", "jar"]
        where = ["-confs", "default", "-retrieve", f"{jar.parent}/[artifact]-[revision].[ext]"]
        subprocess.run([*ivy, *what, *where], check=True, capture_output=True, timeout=FETCH_S)
    with jar.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SHA256, f"{jar} is not the file it should be"
    return jar


def _save(file: Path, properties: dict[str, str]) -> None:
    lines = [f"<property><name>{key}</name><value>{value}</value></property>" for key, value in properties.items()]
    file.write_text("\n".join(["<configuration>", *lines, "</configuration>"]))
