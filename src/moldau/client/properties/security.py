"""TLS and SASL keys of the Java clients, for librdkafka.

JAAS lines become user and password, Java key stores become PEM text (`security.keystores` reads them).
Start at `security_settings`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from moldau.core.errors import InvalidConfigError
from moldau.security.keystores import private_key_pem, trusted_certificates_pem

__all__ = ["SECURITY_KEYS", "parse_jaas", "security_settings"]

SECURITY_KEYS = frozenset(
    {
        "sasl.jaas.config",
        "sasl.client.callback.handler.class",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "ssl.truststore.certificates",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        "ssl.enabled.protocols",
        "ssl.protocol",
        "ssl.provider",
        "ssl.keymanager.algorithm",
        "ssl.trustmanager.algorithm",
        "ssl.secure.random.implementation",
        "ssl.engine.factory.class",
    }
)
"""Keys handled here; other `ssl.` and `sasl.` keys mean the same to librdkafka and pass through."""

_WITHOUT_COUNTERPART = (
    "ssl.enabled.protocols",
    "ssl.protocol",
    "ssl.provider",
    "ssl.engine.factory.class",
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
)


def security_settings(given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """librdkafka's settings for these keys, and a warning for each that has no counterpart."""
    settings: dict[str, str] = {}
    if jaas := given.get("sasl.jaas.config"):
        settings.update(parse_jaas(jaas))
    settings.update(_trust(given))
    settings.update(_identity(given))
    if "ssl.endpoint.identification.algorithm" in given:
        algorithm = given["ssl.endpoint.identification.algorithm"].strip()
        settings["ssl.endpoint.identification.algorithm"] = algorithm.lower() or "none"
    warnings = [f"{key} has no counterpart here and is left out" for key in _WITHOUT_COUNTERPART if given.get(key)]
    return settings, warnings


def parse_jaas(line: str) -> dict[str, str]:
    """Read `<login module> required key="value" ...;` into the settings it stands for."""
    module, _, rest = line.strip().partition(" ")
    options = {key: quoted or bare for key, quoted, bare in _JAAS_OPTION.findall(rest)}
    kind = module.rsplit(".", 1)[-1]
    if kind in ("PlainLoginModule", "ScramLoginModule"):
        if "username" not in options or "password" not in options:
            raise InvalidConfigError(f'sasl.jaas.config: {kind} needs username="..." and password="..."')
        return {"sasl.username": options["username"], "sasl.password": options["password"]}
    if kind == "Krb5LoginModule":
        names = {"keyTab": "sasl.kerberos.keytab", "principal": "sasl.kerberos.principal"}
        return {setting: options[key] for key, setting in names.items() if key in options}
    if kind == "OAuthBearerLoginModule":
        return _oauth_settings(options)
    raise InvalidConfigError(
        f"sasl.jaas.config: {module!r} is not a login module known here (Plain, Scram, Krb5, OAuthBearer)"
    )


_JAAS_OPTION = re.compile(r'([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))')


def _oauth_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The unsecured login of development set-ups, or the client credentials of a token endpoint."""
    if subject := options.get("unsecuredLoginStringClaim_sub"):
        return {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": f"principal={subject}"}
    names = {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    }
    found = {setting: options[key] for key, setting in names.items() if key in options}
    return {"sasl.oauthbearer.method": "oidc", **found} if found else {}


def _trust(given: Mapping[str, str]) -> dict[str, str]:
    if certificates := given.get("ssl.truststore.certificates"):
        return {"ssl.ca.pem": certificates}
    location = given.get("ssl.truststore.location")
    if not location:
        return {}
    if given.get("ssl.truststore.type", "").upper() == "PEM":
        return {"ssl.ca.location": location}
    return {"ssl.ca.pem": trusted_certificates_pem(location, given.get("ssl.truststore.password", ""))}


def _identity(given: Mapping[str, str]) -> dict[str, str]:
    """The client's own key and certificate. librdkafka opens PKCS12 files by itself, JKS files it does not."""
    password = given.get("ssl.key.password", "")
    with_password = {"ssl.key.password": password} if password else {}
    if key := given.get("ssl.keystore.key"):
        return {
            "ssl.key.pem": key,
            "ssl.certificate.pem": given.get("ssl.keystore.certificate.chain", ""),
            **with_password,
        }
    location = given.get("ssl.keystore.location")
    if not location:
        return {}
    store_password = given.get("ssl.keystore.password", "")
    if given.get("ssl.keystore.type", "").upper() == "PEM":
        return {"ssl.key.location": location, "ssl.certificate.location": location, **with_password}
    pem = private_key_pem(location, store_password, password or store_password)
    if pem is None:
        return {"ssl.keystore.location": location, "ssl.keystore.password": store_password}
    return {"ssl.key.pem": pem.key, "ssl.certificate.pem": pem.certificate_chain}
