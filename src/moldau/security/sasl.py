"""SASL mechanisms, client side: the tokens of a login. Pure.

    PLAIN   NUL user NUL password                                                    (RFC 4616)
    SCRAM   client-first -> server-first (salt, iterations) -> client-final with a proof -> server-final with another
            (RFC 5802, 7677); the password is never sent, and the server also has to prove that it knows it

A mechanism object serves one login. Start at `mechanism_named`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Final

from moldau.core.errors import InvalidConfigError

__all__ = ["PlainMechanism", "ScramMechanism", "mechanism_named"]

NONCE_BYTES: Final = 18
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NO_CHANNEL_BINDING: Final = "n,,"
_ITERATIONS: Final = re.compile("[1-9][0-9]{0,5}", re.ASCII)
"""Far above Kafka's upper limit, and low enough that a server cannot keep this process busy for minutes."""


def mechanism_named(name: str, username: str, password: str) -> PlainMechanism | ScramMechanism:
    """The mechanism for a `sasl.mechanism` setting; raises `InvalidConfigError` for an unsupported one."""
    if name == "PLAIN":
        return PlainMechanism(username, password)
    if name in _HASHES:
        return ScramMechanism(name, username, password)
    raise InvalidConfigError(f"sasl.mechanism={name} is not supported here; use PLAIN, {' or '.join(_HASHES)}")


class PlainMechanism:
    name = "PLAIN"

    def __init__(self, username: str, password: str) -> None:
        self._token = f"\0{username}\0{password}".encode()

    def first_token(self) -> bytes:
        return self._token

    def answer(self, challenge: bytes) -> None:
        """PLAIN has a single token: any challenge is answered with nothing."""


class ScramMechanism:
    """Complete once the server's own proof has been checked."""

    def __init__(self, name: str, username: str, password: str, *, nonce: str | None = None) -> None:
        self.name = name
        self._hash_name = _HASHES[name]
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(NONCE_BYTES)
        escaped = username.replace("=", "=3D").replace(",", "=2C")
        self._client_first_bare = f"n={escaped},r={self._nonce}"
        self._server_signature: bytes | None = None
        self._next: Callable[[dict[str, str], str], bytes | None] = self._answer_server_first

    def first_token(self) -> bytes:
        return (_NO_CHANNEL_BINDING + self._client_first_bare).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        text = challenge.decode("utf-8", "strict")
        fields = dict(part.partition("=")[::2] for part in text.split(","))
        if "e" in fields:
            raise ValueError(f"the server refused: {fields['e']}")
        return self._next(fields, text)

    def _answer_server_first(self, fields: dict[str, str], text: str) -> bytes:
        nonce, salt, iterations = fields.get("r", ""), fields.get("s", ""), fields.get("i", "")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise ValueError("the nonce in the server's first message does not begin with the client's")
        if not _ITERATIONS.fullmatch(iterations):
            raise ValueError(f"the server requests {iterations[:20]!r} iterations, which is not a valid number of them")
        salted = hashlib.pbkdf2_hmac(self._hash_name, self._password, b64decode(salt, validate=True), int(iterations))
        without_proof = f"c={b64encode(_NO_CHANNEL_BINDING.encode()).decode()},r={nonce}"
        signed = ",".join((self._client_first_bare, text, without_proof)).encode()
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self._hash_name, client_key).digest()
        signature = self._hmac(stored_key, signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        self._next = self._check_server_final
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def _check_server_final(self, fields: dict[str, str], text: str) -> None:
        expected = b64encode(self._server_signature or b"").decode()
        if not hmac.compare_digest(fields.get("v", "").encode(), expected.encode()):
            raise ValueError("the server could not prove that it knows the password")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash_name)
