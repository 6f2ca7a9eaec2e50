"""Listeners and certificates of a service: `https://host:port` and the PEM files.

Certificates and keys are PEM, from files or as text, such as the text read from a Java key store. Every mistake is an
`InvalidConfigError` that names the file. Start at `Listener.parse` and `server_context`.
"""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from moldau.core.errors import InvalidConfigError, StartupError

__all__ = ["ClientCertificates", "Listener", "TlsFiles", "server_context", "server_context_of_pem"]


class Listener(NamedTuple):
    scheme: str
    host: str
    """Empty for every interface."""
    port: int

    @classmethod
    def parse(cls, text: str, *, default_port: int, key: str = "listeners") -> Listener:
        """Read `http://host:port` or `https://host:port`; the default scheme is http."""
        address = urlsplit(text if "://" in text else f"http://{text}")
        scheme = address.scheme.lower()
        if scheme not in ("http", "https"):
            raise InvalidConfigError(f"{key}={text}: use http://host:port or https://host:port")
        try:
            port = default_port if address.port is None else address.port
        except ValueError:
            raise InvalidConfigError(f"{key}={text}: the port must be a number up to 65535") from None
        return cls(scheme, address.hostname or "", port)

    @property
    def is_tls(self) -> bool:
        return self.scheme == "https"


@dataclass(frozen=True, slots=True)
class ClientCertificates:
    """The CA of client certificates, and whether a client must have one."""

    ca: Path
    is_required: bool = True


@dataclass(frozen=True, slots=True)
class TlsFiles:
    certificate: Path
    """PEM: the server's certificate, then the chain that signed it."""
    key: Path | None = None
    """PEM; `None` if the key is in the certificate's file."""
    key_password: str | None = field(default=None, repr=False)
    clients: ClientCertificates | None = None


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """What `HttpServer` needs for TLS 1.2 and 1.3; raises `InvalidConfigError` naming what is wrong."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    for path in (files.certificate, files.key):
        _check_readable(path)
    where = f"the certificate {files.certificate}" + (f" and the key {files.key}" if files.key else "")
    try:
        # Without a password given, openssl would ask for one on the terminal.
        context.load_cert_chain(files.certificate, files.key, files.key_password or "")
    except ssl.SSLError as error:
        raise InvalidConfigError(f"{where} cannot be used: {_reason(error, files)}") from None
    except (OSError, ValueError) as error:
        raise InvalidConfigError(f"{where} cannot be used: {error}") from None
    if files.clients is not None:
        _trust_clients(context, files.clients)
    return context


def server_context_of_pem(
    certificate_chain: str, key: str, *, clients: ClientCertificates | None = None
) -> ssl.SSLContext:
    """The same from PEM text. Python reads keys only from files, so the text is written to a private temporary file."""
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(f"{key}\n{certificate_chain}")
            file.flush()
            return server_context(TlsFiles(Path(file.name), clients=clients))
    except OSError as error:
        raise StartupError(f"the TLS key cannot be loaded: no temporary file for it: {error.strerror}") from None


def _trust_clients(context: ssl.SSLContext, clients: ClientCertificates) -> None:
    _check_readable(clients.ca)
    try:
        context.load_verify_locations(clients.ca)
    except (ssl.SSLError, OSError) as error:
        raise InvalidConfigError(f"the clients' certificates {clients.ca} cannot be used: {error}") from None
    context.verify_mode = ssl.CERT_REQUIRED if clients.is_required else ssl.CERT_OPTIONAL


def _check_readable(path: Path | None) -> None:
    """OpenSSL's own errors do not name the file."""
    try:
        if path is not None:
            path.open("rb").close()
    except OSError as error:
        raise InvalidConfigError(f"cannot read {path}: {error.strerror}") from None


def _reason(error: ssl.SSLError, files: TlsFiles) -> str:
    """OpenSSL has the same error for a wrong password and for a file of another kind."""
    if error.reason == "KEY_VALUES_MISMATCH":
        return "they do not belong together"
    if b"ENCRYPTED" in (files.key or files.certificate).read_bytes():
        return "the key's password is wrong or missing"
    return f"not PEM, or the certificate or the key is missing ({error.reason or 'no start line'})"
