"""Which connection a client's properties ask for."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.net.tls_transport import make_certificate

from moldau.client.wire import wire_security
from moldau.core.errors import InvalidConfigError

JAAS = 'org.apache.kafka.common.security.{}LoginModule required username="alice" password="secret";'


def test_without_a_protocol_there_is_neither_tls_nor_a_login() -> None:
    assert wire_security({}) == (None, None)


@pytest.mark.parametrize(
    ("protocol", "has_tls", "has_login"),
    [("SSL", True, False), ("SASL_PLAINTEXT", False, True), ("sasl_ssl", True, True)],
)
def test_the_protocol_says_which_steps_there_are(protocol: str, has_tls: bool, has_login: bool) -> None:
    properties = {
        "security.protocol": protocol,
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": JAAS.format("plain.Plain"),
    }
    tls, mechanism = wire_security(properties)
    assert (tls is not None, mechanism is not None) == (has_tls, has_login)
    if mechanism is not None:
        assert mechanism.first_token() == b"\0alice\0secret"


def test_scram_and_librdkafkas_own_names_are_understood() -> None:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "secret",
    }
    mechanism = wire_security(properties).mechanism
    assert mechanism is not None
    assert mechanism.first_token().startswith(b"n,,n=alice,r=")


def test_host_names_are_checked_unless_told_otherwise() -> None:
    checked = wire_security({"security.protocol": "SSL"}).tls
    unchecked = wire_security({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}).tls
    assert checked is not None
    assert unchecked is not None
    assert (checked.check_hostname, unchecked.check_hostname) == (True, False)
    assert unchecked.verify_mode is ssl.CERT_REQUIRED


def test_a_certificate_given_as_text_is_shown_to_the_server(tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path)
    client_context = wire_security(
        {
            "security.protocol": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": key.read_text(),
            "ssl.keystore.certificate.chain": certificate.read_text(),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": certificate.read_text(),
        }
    ).tls
    assert client_context is not None
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificate))
    server_context.load_cert_chain(certificate, key)
    server_context.verify_mode = ssl.CERT_REQUIRED
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, server):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    assert (server.getpeercert() or {})["subject"] == ((("commonName", "alice"),),)


@pytest.mark.parametrize(
    ("properties", "what"),
    [
        ({"security.protocol": "TLS"}, "security.protocol=TLS is none of PLAINTEXT, SSL"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "needs a user and a password"),
        ({"security.protocol": "SSL", "ssl.keystore.key": "nonsense"}, "TLS files .* cannot be used"),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.username": "a",
                "sasl.password": "b",
            },
            "sasl.mechanism=OAUTHBEARER is not supported here",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(properties: dict[str, str], what: str) -> None:
    with pytest.raises(InvalidConfigError, match=what):
        wire_security(properties)
