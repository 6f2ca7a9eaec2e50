"""The HTTP client of a ksql server: documents of statements, and the rows of a query as they come.

Built on the standard library; every request has a connection of its own, so that a server that was restarted is found
again. Start at `KsqlServerClient`.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from moldau.core.errors import MoldauError

__all__ = ["Credentials", "KsqlServerClient", "RefusedError", "ServerAwayError", "split_elements"]

MEDIA_TYPE = "application/vnd.ksql.v1+json"
STATEMENT_TIMEOUT_S = 300.0
"""How long statements may take: the first persistent query of a server starts Spark."""
CONNECT_TIMEOUT_S = 10.0


class ServerAwayError(MoldauError):
    """The server cannot be reached, or went away while it answered."""


class RefusedError(MoldauError):
    """The server answered with an error; `document` is the whole answer."""

    def __init__(self, message: str, status: int, document: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.status = status
        self.document = document


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who asks: a user with a password, or a bearer token; neither for a server without login."""

    user: str | None = None
    password: str = field(default="", repr=False)
    token: str | None = field(default=None, repr=False)

    def headers(self) -> dict[str, str]:
        if self.token is not None:
            return {"Authorization": f"Bearer {self.token}"}
        if self.user is not None:
            encoded = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            return {"Authorization": f"Basic {encoded}"}
        return {}


class KsqlServerClient:
    """One server; raises `ServerAwayError` and `RefusedError`."""

    def __init__(self, url: str, credentials: Credentials | None = None, truststore_pem: str | None = None) -> None:
        self._address = _parse_address(url)
        self._headers = (credentials or _credentials_in(self._address)).headers()
        self._truststore_pem = truststore_pem

    @property
    def url(self) -> str:
        """The server's address without the password that it may hold."""
        return self._address._replace(netloc=self._address.netloc.rpartition("@")[2]).geturl()

    def info(self) -> dict[str, Any]:
        """Version, ids and status of the server."""
        document = self._document("GET", "/info", timeout_s=CONNECT_TIMEOUT_S)
        found = document.get("KsqlServerInfo") if isinstance(document, dict) else None
        if not isinstance(found, dict):
            raise ServerAwayError(f"{self.url} does not answer as a ksql server does; check the address")
        return found

    def check_property(self, name: str) -> None:
        """Raise `RefusedError` if a session may not set a property."""
        self._document("GET", f"/is_valid_property/{quote(name, safe='')}", timeout_s=CONNECT_TIMEOUT_S)

    def run_statements(self, body: Mapping[str, Any], *, timeout_s: float = STATEMENT_TIMEOUT_S) -> list[Any]:
        """The answers of `/ksql`, one for each statement that has one."""
        documents = self._document("POST", "/ksql", body, timeout_s=timeout_s)
        return documents if isinstance(documents, list) else [documents]

    @contextlib.contextmanager
    def open_query(self, body: Mapping[str, Any], *, timeout_s: float | None = None) -> Iterator[Iterator[bytes]]:
        """The body of `/query` in pieces, as it arrives; ends by itself after `timeout_s`. Leaving closes the query."""
        with contextlib.closing(self._connect(CONNECT_TIMEOUT_S)) as connection:
            with self._clear_errors():
                answer = self._request(connection, "POST", "/query", body, timeout_s=STATEMENT_TIMEOUT_S)
                if answer.status >= 400:
                    self._read_document(answer)
            # Errors of whoever uses the rows, such as a closed standard output, are not the server's.
            with contextlib.closing(answer):
                yield self._pieces(answer, connection.sock or _socket_of(answer), timeout_s)

    def _pieces(
        self, answer: http.client.HTTPResponse, connected: socket.socket | None, timeout_s: float | None
    ) -> Iterator[bytes]:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._clear_errors():
            while True:
                if connected is not None:
                    left = None if deadline is None else deadline - time.monotonic()
                    if left is not None and left <= 0:
                        return
                    connected.settimeout(left)
                try:
                    piece = answer.read1(65536)
                except TimeoutError:
                    return
                if not piece:
                    return
                yield piece

    def _document(self, method: str, path: str, body: Any = None, *, timeout_s: float) -> Any:
        connection = self._connect(CONNECT_TIMEOUT_S)
        with contextlib.closing(connection), self._clear_errors():
            return self._read_document(self._request(connection, method, path, body, timeout_s=timeout_s))

    def _request(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any, *, timeout_s: float
    ) -> http.client.HTTPResponse:
        connection.connect()
        connection.sock.settimeout(timeout_s)
        content = None if body is None else json.dumps(body).encode()
        headers = {"Accept": MEDIA_TYPE, "Content-Type": MEDIA_TYPE, **self._headers}
        connection.request(method, self._address.path.rstrip("/") + path, content, headers)
        return connection.getresponse()

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        host = self._address.hostname or "localhost"
        if self._address.scheme == "https":
            context = ssl.create_default_context(cadata=self._truststore_pem)
            return http.client.HTTPSConnection(host, self._address.port, timeout=timeout_s, context=context)
        return http.client.HTTPConnection(host, self._address.port, timeout=timeout_s)

    def _read_document(self, answer: http.client.HTTPResponse) -> Any:
        content = answer.read()
        try:
            document = json.loads(content)
        except ValueError:
            if answer.status in (401, 403):
                raise RefusedError("The server asks for a login: use -u and -p, or -t", answer.status, {}) from None
            raise ServerAwayError(
                f"{self.url} answered with status {answer.status} and no JSON: is a ksql server there?"
            ) from None
        if answer.status >= 400:
            known = document if isinstance(document, dict) else {}
            raise RefusedError(str(known.get("message") or "no reason was given"), answer.status, known)
        return document

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except ConnectionRefusedError:
            raise ServerAwayError(
                f"The server at {self.url} cannot be reached: connection refused. "
                "`moldau ksql-server` starts one, SERVER <url> goes to another"
            ) from None
        except socket.gaierror as error:
            raise ServerAwayError(f"The server at {self.url} cannot be reached: {error.strerror}") from None
        except TimeoutError:
            raise ServerAwayError(f"The server at {self.url} does not answer in time") from None
        except BrokenPipeError as error:
            raise ServerAwayError(f"The server at {self.url} closed the connection") from error
        except (OSError, http.client.HTTPException) as error:
            reason = (
                "closed the connection" if isinstance(error, _CLOSED) else f"failed: {error or type(error).__name__}"
            )
            raise ServerAwayError(f"The server at {self.url} {reason}") from None


_CLOSED = (ConnectionResetError, http.client.RemoteDisconnected, http.client.IncompleteRead)


def split_elements(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The objects in the array of `/query`, each as soon as it is complete, as JSON.

    They come one a line. A line without its end is tried too: the end may only come with the next row.
    """
    pending = b""
    for piece in pieces:
        *lines, pending = (pending + piece).split(b"\n")
        yield from filter(None, map(_bare_element, lines))
        begun = _bare_element(pending)
        if begun.endswith(b"}") and _is_complete(begun):
            yield begun
            pending = b""
    rest = _bare_element(pending)
    if rest:
        yield rest


def _bare_element(line: bytes) -> bytes:
    return line.strip().lstrip(b"[,").rstrip(b",]").strip()


def _is_complete(element: bytes) -> bool:
    try:
        json.loads(element)
    except ValueError:
        return False
    return True


def _socket_of(answer: http.client.HTTPResponse) -> socket.socket | None:
    """The socket of an answer whose connection has handed it over, because it is closed at the answer's end."""
    found = getattr(getattr(answer.fp, "raw", None), "_sock", None)
    return found if isinstance(found, socket.socket) else None


def _parse_address(url: str) -> SplitResult:
    address = urlsplit(url if "://" in url else f"http://{url}")
    try:
        is_valid = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise MoldauError(f"{url!r} is not the address of a server; write http://host:port")
    return address._replace(path=address.path.rstrip("/"))


def _credentials_in(address: SplitResult) -> Credentials:
    if not address.username:
        return Credentials()
    return Credentials(unquote(address.username), unquote(address.password or ""))
