"""Files of a Hadoop file system through its HTTP interface, WebHDFS, which needs nothing of Hadoop on this machine.

A file is written to a temporary one here and sent when it is closed: until then it could be read by nobody anyway, and
a connection that stays open for as long as a file does would not survive a restart of a data node. Start at
`WebHdfsStorage`.
"""

from __future__ import annotations

import getpass
import http.client
import io
import json
import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http import HTTPStatus
from types import MappingProxyType
from typing import IO, Any, Final, cast
from urllib.parse import quote, urlencode, urlsplit

from moldau.connect.api.errors import ConnectError, RetriableError
from moldau.connect.api.limits import Limits

__all__ = ["SCHEMES", "WebHdfsStorage"]

SCHEMES: Final = {"webhdfs": "http", "swebhdfs": "https"}
DEFAULT_PORTS: Final = {"webhdfs": 9870, "swebhdfs": 9871}
TIMEOUT_S: Final = 60.0
NONE: Final[Mapping[str, str]] = MappingProxyType({})
BINARY: Final = "application/octet-stream"
IN_MEMORY: Final = 1 << 20
"""Files up to this size are kept in memory until they are sent."""


class WebHdfsStorage:
    """`webhdfs://user@namenode:9870/folder`; without a user it is $HADOOP_USER_NAME, or that of this process, as with
    Hadoop's tools."""

    def __init__(self, url: str, limits: Limits) -> None:
        parts = urlsplit(url)
        if parts.hostname is None:
            raise ConnectError(f"store.url {url} names no host: it is webhdfs://namenode:9870/folder")
        self._limits = limits
        self._scheme = SCHEMES[parts.scheme]
        self._address = f"{parts.hostname}:{parts.port or DEFAULT_PORTS[parts.scheme]}"
        self._root = parts.path.rstrip("/")
        self._user = parts.username or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        limits.check_host(parts.hostname, parts.port)

    def create(self, path: str) -> IO[bytes]:
        return cast(IO[bytes], _Upload(self, path))

    def read(self, path: str) -> bytes:
        with self._asked("GET", path, "OPEN") as answer:
            return answer.read()

    def rename(self, old: str, new: str) -> None:
        if not self._is_done("PUT", new.rpartition("/")[0], "MKDIRS"):
            raise RetriableError(f"the folder of {new} cannot be made in {self._address}")
        if not self._is_done("PUT", old, "RENAME", {"destination": f"{self._root}/{new}"}):
            # HDFS does not replace files: what is there can only be left from a commit that was cut off.
            self.delete(new)
            if not self._is_done("PUT", old, "RENAME", {"destination": f"{self._root}/{new}"}):
                raise RetriableError(f"{old} cannot be renamed to {new} in {self._address}")

    def delete_tree(self, path: str) -> None:
        self._is_done("DELETE", path, "DELETE", {"recursive": "true"})

    def delete(self, path: str) -> None:
        self._is_done("DELETE", path, "DELETE", {"recursive": "false"})

    def files(self, path: str) -> list[str]:
        names = []
        for entry in self._listed(path):
            if entry["type"] == "DIRECTORY":
                names += self.files(f"{path}/{entry['pathSuffix']}")
            else:
                names.append(str(entry["pathSuffix"]))
        return names

    def send(self, path: str, content: IO[bytes], length: int) -> None:
        """Store a whole file under a name, replacing one that is there."""
        with self._asked("PUT", path, "CREATE", {"overwrite": "true"}, content=content, length=length):
            pass

    def _listed(self, path: str) -> list[dict[str, Any]]:
        try:
            with self._asked("GET", path, "LISTSTATUS") as answer:
                entries: list[dict[str, Any]] = json.load(answer)["FileStatuses"]["FileStatus"]
                return entries
        except _MissingError:
            return []

    def _is_done(self, method: str, path: str, operation: str, parameters: Mapping[str, str] = NONE) -> bool:
        try:
            with self._asked(method, path, operation, parameters) as answer:
                return bool(json.load(answer)["boolean"])
        except _MissingError:
            return False

    @contextmanager
    def _asked(
        self,
        method: str,
        path: str,
        operation: str,
        parameters: Mapping[str, str] = NONE,
        *,
        content: IO[bytes] | None = None,
        length: int = 0,
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer to an operation; the name node sends whoever reads or writes a file to a data node."""
        query = urlencode({"op": operation, "user.name": self._user, **parameters})
        target = f"{self._scheme}://{self._address}/webhdfs/v1{quote(f'{self._root}/{path}')}?{query}"
        try:
            with self._sent(method, target) as first:
                if first.status != HTTPStatus.TEMPORARY_REDIRECT:
                    yield _checked(first, path)
                    return
                place = first.headers["Location"]
            self._limits.check_host(urlsplit(place).hostname or "", urlsplit(place).port)
            with self._sent(method, place, content, length) as second:
                yield _checked(second, path)
        except (OSError, http.client.HTTPException) as error:
            raise RetriableError(f"{path} at {self._address}: {error}") from error

    @contextmanager
    def _sent(
        self, method: str, target: str, content: IO[bytes] | None = None, length: int = 0
    ) -> Iterator[http.client.HTTPResponse]:
        parts = urlsplit(target)
        assert parts.hostname is not None
        with closing(_connection(parts.scheme, parts.hostname, parts.port)) as connection:
            headers = {} if content is None else {"Content-Length": str(length), "Content-Type": BINARY}
            connection.request(method, f"{parts.path}?{parts.query}", content, headers)
            yield connection.getresponse()


class _MissingError(ConnectError):
    """There is no such file or folder."""


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)


def _checked(answer: http.client.HTTPResponse, path: str) -> http.client.HTTPResponse:
    if answer.status < HTTPStatus.BAD_REQUEST:
        return answer
    if answer.status == HTTPStatus.NOT_FOUND:
        raise _MissingError(f"{path} does not exist")
    body = answer.read().decode(errors="replace")
    try:
        found = json.loads(body)["RemoteException"]
        reason, kind = str(found["message"]).splitlines()[0], str(found["exception"])
    except (ValueError, KeyError, TypeError, IndexError):
        reason, kind = body[:200], ""
    passes = answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or kind in ("SafeModeException", "StandbyException")
    raise (RetriableError if passes else ConnectError)(f"{path}: HDFS answers {answer.status}: {reason}")


class _Upload(io.BufferedIOBase):
    """A file on its way: here until it is closed."""

    def __init__(self, storage: WebHdfsStorage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._spool = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115, closed by `close`

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._spool.write(data)

    def tell(self) -> int:
        return self._spool.tell()

    def flush(self) -> None:
        pass

    def close(self) -> None:
        if self.closed:
            return
        try:
            length = self._spool.seek(0, io.SEEK_END)
            self._spool.seek(0)
            self._storage.send(self._path, self._spool, length)
        finally:
            self._spool.close()
            super().close()
