"""Tokens of SASL mechanisms: the examples of the standards, and a server that checks every proof."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.core.errors import InvalidConfigError
from moldau.security.sasl import ScramMechanism, mechanism_named

HASHES = {"SCRAM-SHA-256": hashlib.sha256, "SCRAM-SHA-512": hashlib.sha512}
NONCE = "rOprNGfwEbeRWgbNEkqO"


class ScramServer:
    """Knows a stored key and a server key, as Kafka's metadata does, and never the password."""

    def __init__(self, name: str, password: str, *, salt: bytes = b"salt", iterations: int = 10) -> None:
        self.hash = HASHES[name]
        salted = hashlib.pbkdf2_hmac(self.hash().name, password.encode(), salt, iterations)
        self.stored_key = self.hash(self.sign(salted, b"Client Key")).digest()
        self.server_key = self.sign(salted, b"Server Key")
        self.start = f"s={b64encode(salt).decode()},i={iterations}"

    def sign(self, key: bytes, text: bytes) -> bytes:
        return hmac.new(key, text, self.hash).digest()

    def first(self, client_first: bytes) -> bytes:
        self.client_first_bare = client_first.decode().removeprefix("n,,")
        nonce = self.client_first_bare.rpartition("r=")[2]
        self.server_first = f"r={nonce}-server,{self.start}"
        return self.server_first.encode()

    def final(self, client_final: bytes) -> bytes | None:
        without_proof, _, proof = client_final.decode().rpartition(",p=")
        signed = ",".join((self.client_first_bare, self.server_first, without_proof)).encode()
        signature = self.sign(self.stored_key, signed)
        client_key = bytes(a ^ b for a, b in zip(b64decode(proof), signature, strict=True))
        if self.hash(client_key).digest() != self.stored_key:
            return None
        return b"v=" + b64encode(self.sign(self.server_key, signed))


@given(
    name=st.sampled_from(sorted(HASHES)),
    username=st.text(min_size=1),
    password=st.text(min_size=1),
    guess=st.text(min_size=1),
)
@settings(max_examples=100, deadline=None)
def test_a_server_accepts_the_right_password_and_no_other(name: str, username: str, password: str, guess: str) -> None:
    try:
        f"{username}{password}{guess}".encode()
    except UnicodeEncodeError:
        return  # half a surrogate is no text
    server = ScramServer(name, password)
    for said in (password, guess):
        client = ScramMechanism(name, username, said)
        client_final = client.answer(server.first(client.first_token()))
        assert client_final is not None
        server_final = server.final(client_final)
        assert (server_final is not None) == (said == password)
        if server_final is not None:
            assert client.answer(server_final) is None
            escaped = server.client_first_bare.partition(",r=")[0].removeprefix("n=")
            assert escaped.replace("=2C", ",").replace("=3D", "=") == username


@pytest.mark.parametrize(
    ("challenge", "what"),
    [
        (b"e=unknown-user", "the server refused: unknown-user"),
        (b"r=other,s=AAAA,i=4096", "does not begin with the client"),
        (f"r={NONCE},s=AAAA,i=4096".encode(), "does not begin with the client"),
        (f"r={NONCE}x,s=AAAA,i=0".encode(), "requests '0' iterations"),
        (f"r={NONCE}x,s=AAAA,i=99999999999".encode(), "requests '99999999999' iterations"),
        (f"r={NONCE}x,s=AAAA".encode(), "requests '' iterations"),
        (f"r={NONCE}x,s=A,i=1".encode(), "base64"),
        (b"\xff", "utf-8"),
        (b"", "does not begin with the client"),
    ],
)
def test_a_server_that_does_not_keep_to_the_rules_is_refused(challenge: bytes, what: str) -> None:
    mechanism = ScramMechanism("SCRAM-SHA-256", "user", "pencil", nonce=NONCE)
    with pytest.raises(ValueError, match=what):
        mechanism.answer(challenge)


def test_mechanisms_have_kafkas_names() -> None:
    assert mechanism_named("PLAIN", "u", "p").first_token() == b"\0u\0p"
    assert mechanism_named("SCRAM-SHA-512", "u", "p").name == "SCRAM-SHA-512"
    with pytest.raises(InvalidConfigError, match="=GSSAPI is not supported here; use PLAIN, SCRAM"):
        mechanism_named("GSSAPI", "u", "p")
