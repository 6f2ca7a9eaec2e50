"""Java key stores, read without Java: JKS is parsed here, PKCS12 by openssl.

    JKS:  magic FEEDFEED | version | count | entries | SHA-1 of password, a fixed salt, and all before
    entry: tag 1 = private key, 2 = trusted certificate | alias | created, ms | content

Start at `trusted_certificates_pem` and `key_pem`.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
import subprocess
from base64 import encodebytes
from pathlib import Path
from typing import NamedTuple

from moldau.core.errors import InvalidConfigError

__all__ = ["KeyPem", "key_pem", "private_key_pem", "trusted_certificates_pem"]

JKS_MAGIC = 0xFEEDFEED
PRIVATE_KEY_TAG, CERTIFICATE_TAG = 1, 2
INTEGRITY_SALT = b"Mighty Aphrodite"
"""Part of the format: every JKS file's digest includes these words."""


class KeyPem(NamedTuple):
    key: str
    certificate_chain: str


class _Jks(NamedTuple):
    trusted: list[bytes]
    keys: list[tuple[bytes, list[bytes]]]


def trusted_certificates_pem(location: str, password: str) -> str:
    """Every trusted certificate of a JKS, PKCS12 or PEM file, as PEM text."""
    content = _load(location)
    if content.startswith(b"-----BEGIN"):
        return content.decode()
    if _is_jks(content):
        store = _parse_jks(content, location, password)
        certificates = store.trusted + [certificate for _, chain in store.keys for certificate in chain]
        return "".join(ssl.DER_cert_to_PEM_cert(certificate) for certificate in certificates)
    return _openssl_certificates(location, password)


def private_key_pem(location: str, store_password: str, key_password: str) -> KeyPem | None:
    """The first private key of a JKS file with its chain; `None` for other formats, which librdkafka reads."""
    content = _load(location)
    if not _is_jks(content):
        return None
    store = _parse_jks(content, location, store_password)
    if not store.keys:
        raise InvalidConfigError(f"{location} holds no private key")
    protected, chain = store.keys[0]
    key = _unprotect(protected, key_password, location)
    body = encodebytes(key).decode()
    pem = f"-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\n"
    return KeyPem(pem, "".join(ssl.DER_cert_to_PEM_cert(certificate) for certificate in chain))


def key_pem(location: str, store_password: str, key_password: str) -> KeyPem | None:
    """The private key of a JKS or PKCS12 file with its chain; `None` for a PEM file, which is used as it is."""
    if b"-----BEGIN" in _load(location):
        return None
    found = private_key_pem(location, store_password, key_password)
    if found is not None:
        return found
    key = _openssl(location, store_password, "-nocerts", "-nodes", wanted="PRIVATE KEY")
    own = _openssl(location, store_password, "-clcerts", "-nokeys", wanted="CERTIFICATE")
    authorities = _openssl(location, store_password, "-cacerts", "-nokeys", wanted=None)
    return KeyPem(key, own + authorities)


def _load(location: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise InvalidConfigError(f"cannot read the key store {location}: {error.strerror}") from None


def _is_jks(content: bytes) -> bool:
    return len(content) >= 4 and int.from_bytes(content[:4]) == JKS_MAGIC


class _Cursor:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.position = 0

    def take(self, length: int) -> bytes:
        if length < 0 or self.position + length > len(self.content):
            raise ValueError("ends early")
        self.position += length
        return self.content[self.position - length : self.position]

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width))

    def text(self) -> str:
        return self.take(self.number(2)).decode("utf-8", "replace")


def _parse_jks(content: bytes, location: str, password: str) -> _Jks:
    if password and _digest(password, content[:-20]) != content[-20:]:
        raise InvalidConfigError(f"{location} cannot be opened with the given password")
    try:
        return _entries(_Cursor(content[:-20]))
    except ValueError as error:
        raise InvalidConfigError(f"{location} is not a whole JKS file: {error}") from None


def _entries(cursor: _Cursor) -> _Jks:
    store = _Jks([], [])
    _, version, count = struct.unpack(">III", cursor.take(12))
    for _ in range(count):
        tag = cursor.number(4)
        cursor.text()
        cursor.take(8)
        if tag == CERTIFICATE_TAG:
            store.trusted.append(_certificate(cursor, version))
        elif tag == PRIVATE_KEY_TAG:
            key = cursor.take(cursor.number(4))
            store.keys.append((key, [_certificate(cursor, version) for _ in range(cursor.number(4))]))
        else:
            raise ValueError(f"entry of unknown kind {tag}")
    return store


def _certificate(cursor: _Cursor, version: int) -> bytes:
    if version >= 2:
        cursor.text()
    return cursor.take(cursor.number(4))


def _digest(password: str, content: bytes) -> bytes:
    return hashlib.sha1(password.encode("utf-16-be") + INTEGRITY_SALT + content).digest()


def _unprotect(protected: bytes, password: str, location: str) -> bytes:
    """Decrypt a key as Sun's key protector does: XOR with a chain of SHA-1 over the password, then check a digest.

    The protected bytes are the last field of a DER envelope whose octet string runs to the end.
    """
    secret = password.encode("utf-16-be")
    blob = _last_octet_string(protected)
    salt, encrypted, check = blob[:20], blob[20:-20], blob[-20:]
    stream, previous = b"", salt
    while len(stream) < len(encrypted):
        previous = hashlib.sha1(secret + previous).digest()
        stream += previous
    key = bytes(a ^ b for a, b in zip(encrypted, stream, strict=False))
    if hashlib.sha1(secret + key).digest() != check:
        raise InvalidConfigError(f"the private key in {location} cannot be opened with the given password")
    return key


def _last_octet_string(envelope: bytes) -> bytes:
    """The content of the second element of a DER sequence: algorithm first, data second."""
    position = _skip_header(envelope, 0)[0]
    start, length = _skip_header(envelope, position)
    start, length = _skip_header(envelope, start + length)
    return envelope[start : start + length]


def _skip_header(der: bytes, position: int) -> tuple[int, int]:
    """Position and length of the content of the DER element at `position`."""
    first = der[position + 1]
    if first < 0x80:
        return position + 2, first
    width = first & 0x7F
    return position + 2 + width, int.from_bytes(der[position + 2 : position + 2 + width])


def _openssl_certificates(location: str, password: str) -> str:
    return _openssl(location, password, "-nokeys", wanted="CERTIFICATE")


def _openssl(location: str, password: str, *options: str, wanted: str | None) -> str:
    """What openssl reads from a PKCS12 file, as PEM; raises if there is none of what is `wanted`."""
    advice = f"convert it once: openssl pkcs12 -in {location} {' '.join(options)} -out store.pem, and name that file"
    command = ["openssl", "pkcs12", "-in", location, *options, "-passin", "stdin"]
    try:
        done = subprocess.run(command, input=password + "\n", capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise InvalidConfigError(f"{location} is a PKCS12 file and openssl is not installed; {advice}") from None
    if done.returncode or (wanted is not None and f"{wanted}-----" not in done.stdout):
        what = "certificates" if wanted == "CERTIFICATE" else "private key" if wanted else "authorities"
        raise InvalidConfigError(f"{location}: openssl found no {what} in it with the given password; {advice}")
    return done.stdout
