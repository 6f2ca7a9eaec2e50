"""SCRAM credentials given when a node is formatted: `SCRAM-SHA-256=[name=alice,password=secret]`.

Only keys derived from the password are stored. Start at `parse_credential`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from typing import Final, NamedTuple

from moldau.core.errors import InvalidConfigError
from moldau.protocol.metadata_records import UserScramCredentialRecord

__all__ = ["parse_credential"]

LEAST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 16384


class _Mechanism(NamedTuple):
    number: int
    digest: str


_MECHANISMS: Final = {"SCRAM-SHA-256": _Mechanism(1, "sha256"), "SCRAM-SHA-512": _Mechanism(2, "sha512")}


def parse_credential(text: str) -> UserScramCredentialRecord:
    """Parse one credential; raises `InvalidConfigError` that names the missing part."""
    mechanism_name, equals, rest = text.partition("=")
    mechanism = _MECHANISMS.get(mechanism_name.strip())
    rest = rest.strip()
    if not equals or mechanism is None:
        raise InvalidConfigError(f"{mechanism_name!r} is not a SCRAM mechanism; use {' or '.join(_MECHANISMS)}")
    if not (rest.startswith("[") and rest.endswith("]")):
        raise InvalidConfigError(f"Expected {mechanism_name}=[name=user,password=secret]")
    fields = dict(part.partition("=")[::2] for part in rest[1:-1].split(","))
    fields = {key.strip(): value.strip().strip('"') for key, value in fields.items()}
    if not fields.get("name"):
        raise InvalidConfigError("You must supply 'name' to add-scram")
    salt = _decode_base64(fields["salt"]) if "salt" in fields else os.urandom(24)
    iterations = _iterations(fields.get("iterations"))
    salted = _salted_password(fields, mechanism.digest, salt, iterations)
    stored_key = hashlib.new(mechanism.digest, _hmac(salted, b"Client Key", mechanism.digest)).digest()
    return UserScramCredentialRecord(
        name=fields["name"],
        mechanism=mechanism.number,
        salt=salt,
        stored_key=stored_key,
        server_key=_hmac(salted, b"Server Key", mechanism.digest),
        iterations=iterations,
    )


def _salted_password(fields: dict[str, str], digest: str, salt: bytes, iterations: int) -> bytes:
    if ("password" in fields) == ("saltedpassword" in fields):
        raise InvalidConfigError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if "saltedpassword" in fields:
        if "salt" not in fields:
            raise InvalidConfigError("You must supply 'salt' with 'saltedpassword' to add-scram")
        return _decode_base64(fields["saltedpassword"])
    return hashlib.pbkdf2_hmac(digest, fields["password"].encode(), salt, iterations)


def _iterations(text: str | None) -> int:
    if text is None:
        return LEAST_ITERATIONS
    if not text.isdigit() or not LEAST_ITERATIONS <= int(text) <= MOST_ITERATIONS:
        raise InvalidConfigError(
            f"The 'iterations' value must be between {LEAST_ITERATIONS} and {MOST_ITERATIONS} for add-scram"
        )
    return int(text)


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidConfigError(f"{text!r} is not base64") from None


def _hmac(key: bytes, message: bytes, digest: str) -> bytes:
    return hmac.new(key, message, digest).digest()
