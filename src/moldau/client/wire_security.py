"""How `client.wire` connects by the security keys of a client's properties: TLS, a SASL login, both or neither.

Start at `wire_security`.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from typing import NamedTuple

from moldau.client.security_properties import security_settings
from moldau.core.errors import InvalidConfigError
from moldau.protocol.sasl_login import SaslMechanism
from moldau.security.sasl import mechanism_named

__all__ = ["WireSecurity", "wire_security"]

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class WireSecurity(NamedTuple):
    """What one connection needs; a mechanism serves one login only."""

    tls: ssl.SSLContext | None = None
    mechanism: SaslMechanism | None = None


def wire_security(properties: Mapping[str, str]) -> WireSecurity:
    """By `security.protocol` and its companions; raises `InvalidConfigError` for what cannot be done."""
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
    """Authorities from the trust store, else the system's; the client's own certificate where there is one."""
    try:
        context = ssl.create_default_context(cafile=settings.get("ssl.ca.location"), cadata=settings.get("ssl.ca.pem"))
        context.check_hostname = settings.get("ssl.endpoint.identification.algorithm") != "none"
        password = settings.get("ssl.key.password")
        if location := settings.get("ssl.certificate.location"):
            context.load_cert_chain(location, settings.get("ssl.key.location"), password)
        elif key := settings.get("ssl.key.pem"):
            # Python reads certificates from files only; this one belongs to us alone and is gone at once.
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                file.write(f"{key}\n{settings.get('ssl.certificate.pem', '')}\n")
                file.flush()
                context.load_cert_chain(file.name, password=password)
    except OSError as error:
        raise InvalidConfigError(f"the TLS files of the client's properties cannot be used: {error}") from None
    return context
