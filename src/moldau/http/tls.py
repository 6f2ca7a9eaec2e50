"""Listeners and certificates of a service: `https://host:port` and the PEM files.

Services name their files by Kafka's keys: PEM, or Java's key stores (JKS, PKCS12). Every mistake is an
`InvalidConfigError` that names the file. Start at `Listener.choose` and `listener_context`.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from moldau.core.addresses import is_loopback
from moldau.core.errors import InvalidConfigError, StartupError
from moldau.security.keystores import key_pem, trusted_certificates_pem

__all__ = [
    "ClientCertificates",
    "Listener",
    "TlsFiles",
    "is_tls_key",
    "listener_context",
    "peer_context",
    "server_context",
    "server_context_of_pem",
]

_EVERY_INTERFACE = ("", "0.0.0.0", "::")
_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "false": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
    "true": ssl.CERT_REQUIRED,
}
_KEYSTORE, _TRUSTSTORE = "ssl.keystore.location", "ssl.truststore.location"


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

    @classmethod
    def choose(cls, texts: Sequence[str], *, default_port: int, key: str = "listeners") -> Listener:
        """The one to serve of several: the first without TLS, else the first with it."""
        found = [cls.parse(text, default_port=default_port, key=key) for text in texts]
        if not found:
            raise InvalidConfigError(f"{key}: one of the form http://host:port or https://host:port is needed")
        return next((listener for listener in found if not listener.is_tls), found[0])

    @property
    def is_tls(self) -> bool:
        return self.scheme == "https"

    @property
    def is_open(self) -> bool:
        """Whether other machines can connect."""
        return not is_loopback(self.host)

    def url(self, port: int) -> str:
        """The URL with the port that was bound, as seen from the same machine."""
        host = "127.0.0.1" if self.host in _EVERY_INTERFACE else self.host
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    def reach(self, how_to_open: str) -> str:
        """Description for the log of which machines can connect."""
        if self.host in _EVERY_INTERFACE:
            return "listens on every interface"
        return f"listens on {self.host}" if self.is_open else f"this machine only; {how_to_open} opens it to others"


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


def is_tls_key(name: str) -> bool:
    """Whether a setting belongs to the TLS of a listener."""
    return name.startswith("ssl.")


def listener_context(listener: Listener, properties: Mapping[str, str]) -> ssl.SSLContext | None:
    """TLS of an https listener by Kafka's `ssl.*` keys; `None` for http. Raises `InvalidConfigError`."""
    if not listener.is_tls:
        return None
    location = properties.get(_KEYSTORE)
    if not location:
        raise InvalidConfigError(
            f"an https listener needs {_KEYSTORE}: a JKS or PKCS12 file, or PEM with key and chain"
        )
    password = properties.get("ssl.keystore.password", "")
    key_password = properties.get("ssl.key.password", "")
    pem = key_pem(location, password, key_password or password)
    if pem is not None:
        context = server_context_of_pem(pem.certificate_chain, pem.key)
    else:
        context = server_context(TlsFiles(Path(location), key_password=key_password or None))
    auth = properties.get("ssl.client.authentication") or properties.get("ssl.client.auth") or "none"
    if auth.lower() not in _CLIENT_AUTH:
        raise InvalidConfigError(f"ssl.client.authentication={auth}: use NONE, REQUESTED or REQUIRED")
    mode = _CLIENT_AUTH[auth.lower()]
    if mode != ssl.CERT_NONE:
        context.load_verify_locations(cadata=_trusted_certificates(properties, f"ssl.client.authentication={auth}"))
        context.verify_mode = mode
    return context


def peer_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """For requests to other instances of a service, which have the same `ssl.*` keys: whom to trust, and our key."""
    if not properties.get(_TRUSTSTORE):
        return ssl.create_default_context()
    context = ssl.create_default_context(cadata=_trusted_certificates(properties, "https"))
    if location := properties.get(_KEYSTORE):
        password = properties.get("ssl.keystore.password", "")
        key_password = properties.get("ssl.key.password", "")
        pem = key_pem(location, password, key_password or password)
        if pem is None:
            context.load_cert_chain(location, password=key_password)
        else:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                file.write(f"{pem.key}\n{pem.certificate_chain}")
                file.flush()
                context.load_cert_chain(file.name)
    return context


def _trusted_certificates(properties: Mapping[str, str], wanted_by: str) -> str:
    location = properties.get(_TRUSTSTORE)
    if not location:
        raise InvalidConfigError(f"{wanted_by} needs {_TRUSTSTORE}: a JKS, PKCS12 or PEM file of trusted certificates")
    return trusted_certificates_pem(location, properties.get("ssl.truststore.password", ""))


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
