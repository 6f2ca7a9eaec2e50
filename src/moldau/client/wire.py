"""A small request client: one connection to one broker, one request at a time, any API.

For what librdkafka does not offer (log dirs, api versions, producers, …) and for tests that ask a broker
directly. No retries, no metadata, no pooling: the caller picks the broker. Start at `WireClient.send`.

    with WireClient("localhost", 9092) as client:
        cluster = client.send(ApiKey.DESCRIBE_CLUSTER, Message())
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import Final, Self

from moldau.client.errors import ClientError, UnreachableError
from moldau.core.errors import ErrorCode
from moldau.protocol.api import (
    APIS,
    ApiKey,
    MalformedResponseError,
    decode_response_header,
    encode_request_header,
)
from moldau.protocol.messages import Message, decode_response, encode_request

__all__ = ["WireClient"]

_MAX_RESPONSE_BYTES: Final = 1 << 30
_PIECE: Final = 1 << 20


class WireClient:
    """A connection that asks and waits. Not for several threads at once."""

    def __init__(
        self,
        host: str,
        port: int,
        timeout: float = 30.0,
        *,
        client_id: str | None = "moldau",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Connect; `timeout` in seconds holds for this and for each request after it."""
        self.address = f"{host}:{port}"
        self._timeout = timeout
        self._client_id = client_id
        self._correlation_id = 0
        self._ranges: dict[int, tuple[int, int]] | None = None
        try:
            self._socket = socket.create_connection((host, port), timeout)
            if tls is not None:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        except OSError as error:
            raise UnreachableError(f"cannot connect to {self.address}: {error}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def interrupt(self) -> None:
        """From another thread: whoever waits for an answer here gets an `UnreachableError` instead."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # nobody was connected any more

    def api_versions(self) -> dict[int, tuple[int, int]]:
        """What the broker announces: API key to lowest and highest version. Asked once per connection."""
        if self._ranges is None:
            newest = APIS[ApiKey.API_VERSIONS].last
            software = Message(client_software_name="moldau", client_software_version="0")
            reply = self._ask_versions(newest, software)
            if reply.error_code:
                raise ClientError(f"{self.address} refused to tell its versions", ErrorCode(reply.error_code))
            self._ranges = {api.api_key: (api.min_version, api.max_version) for api in reply.api_keys}
        return self._ranges

    def _ask_versions(self, version: int, request: Message) -> Message:
        """A broker that does not know our version of this one API says so in the form of version 0."""
        frame = self._exchange(ApiKey.API_VERSIONS, version, request)
        unsupported = ErrorCode.UNSUPPORTED_VERSION
        if version and int.from_bytes(frame[4:6], "big", signed=True) == unsupported:
            reply = decode_response(ApiKey.API_VERSIONS, 0, frame[4:])
            return self._ask_versions(_offered(reply, below=version), request)
        return decode_response(ApiKey.API_VERSIONS, version, frame[4:])

    def send(self, api_key: int, request: Message, version: int | None = None) -> Message:
        """Ask, and return the answer; `version` is the highest both sides know unless given.

        Errors within the answer are the caller's to judge. Trouble on the way is a `ClientError`.
        """
        chosen = self.version_for(api_key) if version is None else version
        frame = self._exchange(api_key, chosen, request)
        _, position = decode_response_header(api_key, chosen, frame)
        return decode_response(api_key, chosen, memoryview(frame)[position:])

    def send_unanswered(self, api_key: int, request: Message, version: int | None = None) -> None:
        """Ask what has no answer: a produce with acks=0."""
        self._put(api_key, self.version_for(api_key) if version is None else version, request)

    def version_for(self, api_key: int) -> int:
        """The highest version of an API that both sides know."""
        name = ApiKey(api_key).display_name
        offered = self.api_versions().get(api_key)
        if offered is None:
            raise ClientError(f"{self.address} does not offer {name}", ErrorCode.UNSUPPORTED_VERSION)
        known = APIS[api_key]
        version = min(known.last, offered[1])
        if version < max(known.first, offered[0]):
            raise ClientError(
                f"{self.address} offers {name} {offered[0]}-{offered[1]}, we know {known.first}-{known.last}",
                ErrorCode.UNSUPPORTED_VERSION,
            )
        return version

    # --- frames -------------------------------------------------------------------------------------

    def _exchange(self, api_key: int, version: int, request: Message) -> bytes:
        deadline = time.monotonic() + self._timeout
        self._put(api_key, version, request)
        try:
            size = int.from_bytes(self._take(4, deadline), "big", signed=True)
            if not 4 <= size <= _MAX_RESPONSE_BYTES:
                raise MalformedResponseError(f"{self.address} announced a response of {size} bytes")
            frame = self._take(size, deadline)
        except TimeoutError:
            name = ApiKey(api_key).display_name
            raise UnreachableError(f"{self.address} did not answer {name} within {self._timeout:g} s") from None
        except OSError as error:
            raise UnreachableError(f"lost the connection to {self.address}: {error}") from None
        answered = int.from_bytes(frame[:4], "big", signed=True)
        if answered != self._correlation_id:
            raise MalformedResponseError(f"{self.address} answered request {answered}, not {self._correlation_id}")
        return frame

    def _put(self, api_key: int, version: int, request: Message) -> None:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = encode_request_header(api_key, version, self._correlation_id, self._client_id)
        frame = header + encode_request(api_key, version, request)
        try:
            self._socket.settimeout(self._timeout)
            self._socket.sendall(len(frame).to_bytes(4, "big") + frame)
        except OSError as error:
            raise UnreachableError(f"cannot send to {self.address}: {error}") from None

    def _take(self, size: int, deadline: float) -> bytes:
        """Receive exactly `size` bytes, making room only for what has come."""
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


def _offered(reply: Message, *, below: int) -> int:
    """The version of ApiVersions to try next, lower than the one that failed."""
    own = next((api.max_version for api in reply.api_keys if api.api_key == ApiKey.API_VERSIONS), 0)
    return int(min(own, below - 1))
