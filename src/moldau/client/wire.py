"""A small request client: one connection to one broker, one request at a time, any API.

For APIs that librdkafka does not offer (log dirs, api versions, producers, …) and for tests that talk to a broker
directly. No retries, no metadata, no pooling: the caller picks the broker. Opening a connection is a list of steps:
connect, TLS, SASL login; `wire_security` takes the last two from a client's properties. Start at `WireClient.send` and
`opening_steps`.

    with WireClient("localhost", 9092) as client:
        cluster = client.send(ApiKey.DESCRIBE_CLUSTER, Message())
"""

from __future__ import annotations

import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Self

from moldau.client.errors import ClientError, UnreachableError
from moldau.client.properties.security import security_settings
from moldau.core.errors import ErrorCode, InvalidConfigError
from moldau.protocol.api import (
    ApiKey,
    MalformedResponseError,
    decode_response_header,
    encode_request_header,
)
from moldau.protocol.messages import Message, decode_response, encode_request
from moldau.protocol.negotiation import (
    NEWEST_API_VERSIONS,
    OfferedApis,
    UnsupportedApiError,
    api_versions_request,
    decode_api_versions,
)
from moldau.protocol.sasl_login import FIRST_HANDSHAKE_VERSION, AuthenticationError, SaslMechanism, sasl_login
from moldau.security.sasl import mechanism_named

__all__ = ["WireClient", "WireSecurity", "opening_steps", "wire_security"]


_MAX_RESPONSE_BYTES: Final = 1 << 30
_PIECE: Final = 1 << 20


class WireClient:
    """A blocking connection to one broker. Not thread-safe."""

    def __init__(
        self,
        host: str,
        port: int,
        timeout: float = 30.0,
        *,
        client_id: str | None = "moldau",
        tls: ssl.SSLContext | None = None,
        mechanism: SaslMechanism | None = None,
    ) -> None:
        """Connect, with TLS and a SASL login where given; `timeout`, in seconds, applies to each step and request."""
        self.host, self.port = host, port
        self.address = f"{host}:{port}"
        self.session_lifetime_ms = 0
        """Time after which the login expires and a new connection is needed; 0 for never."""
        self._timeout = timeout
        self._client_id = client_id
        self._correlation_id = 0
        self._offered: OfferedApis | None = None
        self._socket: socket.socket
        try:
            for step in opening_steps(tls, mechanism):
                step(self)
        except BaseException:
            if hasattr(self, "_socket"):
                self._socket.close()
            raise

    # Opening, step by step

    def connect(self) -> None:
        try:
            self._socket = socket.create_connection((self.host, self.port), self._timeout)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise UnreachableError(f"cannot connect to {self.address}: {error}") from None

    def wrap_tls(self, context: ssl.SSLContext) -> None:
        try:
            self._socket = context.wrap_socket(self._socket, server_hostname=self.host)
        except OSError as error:
            raise UnreachableError(f"cannot connect to {self.address} by TLS: {error}") from None

    def log_in(self, mechanism: SaslMechanism) -> None:
        """Raises `ClientError` with Kafka's code where the broker rejects the login."""
        self.version_for(ApiKey.SASL_HANDSHAKE, at_least=FIRST_HANDSHAKE_VERSION)
        login = sasl_login(mechanism)
        try:
            api_key, request = next(login)
            while True:
                api_key, request = login.send(self.send(api_key, request))
        except StopIteration as done:
            self.session_lifetime_ms = done.value
        except AuthenticationError as error:
            raise ClientError(f"cannot log in to {self.address}: {error}", error.code) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def interrupt(self) -> None:
        """From another thread: a request that waits for its response raises `UnreachableError`."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the connection was closed already

    def api_versions(self) -> dict[int, tuple[int, int]]:
        """The broker's API keys with lowest and highest version. Requested once per connection."""
        return dict(self._offered_apis().ranges)

    def _offered_apis(self) -> OfferedApis:
        version = NEWEST_API_VERSIONS
        while self._offered is None:
            frame = self._exchange(ApiKey.API_VERSIONS, version, api_versions_request())
            offered = decode_api_versions(self.address, version, frame)
            if isinstance(offered, OfferedApis):
                self._offered = offered
            else:
                version = offered
        return self._offered

    def send(self, api_key: int, request: Message, version: int | None = None) -> Message:
        """Send a request and return the response; `version` defaults to the highest that both sides know.

        Error codes inside the response are left to the caller. Connection failures raise `ClientError`.
        """
        chosen = self.version_for(api_key) if version is None else version
        frame = self._exchange(api_key, chosen, request)
        _, position = decode_response_header(api_key, chosen, frame)
        return decode_response(api_key, chosen, memoryview(frame)[position:])

    def send_unanswered(self, api_key: int, request: Message, version: int | None = None) -> None:
        """Send a request without a response: a produce with acks=0."""
        self._send_frame(api_key, self.version_for(api_key) if version is None else version, request)

    def version_for(self, api_key: int, *, at_least: int = 0) -> int:
        """The highest version of an API that both sides know."""
        try:
            return self._offered_apis().version_for(api_key, at_least=at_least)
        except UnsupportedApiError as error:
            raise ClientError(str(error), ErrorCode.UNSUPPORTED_VERSION) from None

    # Frames

    def _exchange(self, api_key: int, version: int, request: Message) -> bytes:
        deadline = time.monotonic() + self._timeout
        self._send_frame(api_key, version, request)
        try:
            size = int.from_bytes(self._receive(4, deadline), "big", signed=True)
            if not 4 <= size <= _MAX_RESPONSE_BYTES:
                raise MalformedResponseError(f"{self.address} announced a response of {size} bytes")
            frame = self._receive(size, deadline)
        except TimeoutError:
            name = ApiKey(api_key).display_name
            raise UnreachableError(f"{self.address} did not answer {name} within {self._timeout:g} s") from None
        except OSError as error:
            raise UnreachableError(f"lost the connection to {self.address}: {error}") from None
        answered = int.from_bytes(frame[:4], "big", signed=True)
        if answered != self._correlation_id:
            raise MalformedResponseError(f"{self.address} answered request {answered}, not {self._correlation_id}")
        return frame

    def _send_frame(self, api_key: int, version: int, request: Message) -> None:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = encode_request_header(api_key, version, self._correlation_id, self._client_id)
        frame = header + encode_request(api_key, version, request)
        try:
            self._socket.settimeout(self._timeout)
            self._socket.sendall(len(frame).to_bytes(4, "big") + frame)
        except OSError as error:
            raise UnreachableError(f"cannot send to {self.address}: {error}") from None

    def _receive(self, size: int, deadline: float) -> bytes:
        """Receive exactly `size` bytes, allocating memory only for what has arrived."""
        received = bytearray()
        while len(received) < size:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            piece = self._socket.recv(min(_PIECE, size - len(received)))
            if not piece:
                raise ConnectionError("closed by the broker")
            received += piece
        return bytes(received)


Step = Callable[[WireClient], None]


def opening_steps(tls: ssl.SSLContext | None, mechanism: SaslMechanism | None) -> list[Step]:
    """The steps that open a connection, as `security.protocol` requires them."""
    steps: list[Step] = [WireClient.connect]
    if tls is not None:
        steps.append(lambda client: client.wrap_tls(tls))
    if mechanism is not None:
        steps.append(lambda client: client.log_in(mechanism))
    return steps


PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class WireSecurity(NamedTuple):
    """TLS context and SASL mechanism of one connection; a mechanism serves one login only."""

    tls: ssl.SSLContext | None = None
    mechanism: SaslMechanism | None = None


def wire_security(properties: Mapping[str, str]) -> WireSecurity:
    """From `security.protocol` and the related keys; raises `InvalidConfigError` for unusable settings."""
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise InvalidConfigError(f"security.protocol={protocol} is none of {', '.join(PROTOCOLS)}")
    if protocol == "PLAINTEXT":
        return WireSecurity()
    settings = {**properties, **security_settings(properties)[0]}
    return WireSecurity(
        tls=_tls_context(settings) if protocol.endswith("SSL") else None,
        mechanism=_mechanism(settings) if protocol.startswith("SASL") else None,
    )


def _mechanism(settings: Mapping[str, str]) -> SaslMechanism:
    name = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "GSSAPI"
    username, password = settings.get("sasl.username"), settings.get("sasl.password")
    if username is None or password is None:
        raise InvalidConfigError(
            f"sasl.mechanism={name} needs a user and a password: set sasl.jaas.config, for example "
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="..." password="...";'
        )
    return mechanism_named(name, username, password)


def _tls_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Trusts the CAs of the trust store, else the system's; presents the client's certificate where there is one."""
    try:
        context = ssl.create_default_context(cafile=settings.get("ssl.ca.location"), cadata=settings.get("ssl.ca.pem"))
        context.check_hostname = settings.get("ssl.endpoint.identification.algorithm") != "none"
        password = settings.get("ssl.key.password")
        if location := settings.get("ssl.certificate.location"):
            context.load_cert_chain(location, settings.get("ssl.key.location"), password)
        elif key := settings.get("ssl.key.pem"):
            # Python reads certificates from files only; this one is private and deleted at once.
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                file.write(f"{key}\n{settings.get('ssl.certificate.pem', '')}\n")
                file.flush()
                context.load_cert_chain(file.name, password=password)
    except OSError as error:
        raise InvalidConfigError(f"the TLS files of the client's properties cannot be used: {error}") from None
    return context
