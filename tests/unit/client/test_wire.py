"""The request client against a scripted broker: what it picks, what it refuses, how it fails."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.unit.net.tls_transport import tls

from moldau.client.errors import ClientError, UnreachableError
from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey, MalformedResponseError, decode_request_header, encode_response_header
from moldau.protocol.messages import Message, decode_request, encode_response
from moldau.protocol.sasl_login import SaslMechanism
from moldau.security.sasl import PlainMechanism, ScramMechanism

Answer = Callable[[bytes], bytes | None]


class ScriptedBroker:
    """Answers each frame of one connection with what `answer` returns; `None` hangs up."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.answer: Answer = announce
        self.requests: list[tuple[int, int]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            try:
                connection = connection if self._tls is None else self._tls.wrap_socket(connection, server_side=True)
            except OSError:
                connection.close()
                continue
            with connection, connection.makefile("rwb") as stream:
                while size := stream.read(4):
                    frame = stream.read(int.from_bytes(size, "big"))
                    header = decode_request_header(frame)
                    self.requests.append((header.api_key, header.api_version))
                    reply = self.answer(frame)
                    if reply is None:
                        break
                    stream.write(reply)
                    stream.flush()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)


def framed(frame: bytes, response: Message, version: int | None = None) -> bytes:
    header = decode_request_header(frame)
    version = header.api_version if version is None else version
    body = encode_response_header(header.api_key, version, header.correlation_id)
    body += encode_response(header.api_key, version, response)
    return len(body).to_bytes(4, "big") + body


RANGES = [(18, 0, 4), (3, 0, 9), (60, 0, 99), (22, 90, 99), (17, 0, 1), (36, 0, 2)]
ANNOUNCED = Message(api_keys=[Message(api_key=key, min_version=low, max_version=high) for key, low, high in RANGES])


def announce(frame: bytes) -> bytes | None:
    header = decode_request_header(frame)
    if header.api_key == ApiKey.API_VERSIONS:
        return framed(frame, ANNOUNCED)
    if header.api_key == ApiKey.METADATA:
        request = decode_request(3, header.api_version, frame[header.body_position :])
        return framed(frame, Message(cluster_id=request.topics[0].name, controller_id=1))
    return framed(frame, Message(cluster_id="here"))


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    broker = ScriptedBroker()
    yield broker
    broker.close()


@pytest.fixture
def client(broker: ScriptedBroker) -> Iterator[WireClient]:
    with WireClient("127.0.0.1", broker.port, timeout=5) as client:
        yield client


def test_the_highest_version_both_sides_know_is_spoken(broker: ScriptedBroker, client: WireClient) -> None:
    assert client.send(ApiKey.METADATA, Message(topics=[Message(name="echo")])).cluster_id == "echo"
    assert client.send(ApiKey.DESCRIBE_CLUSTER, Message()).cluster_id == "here"
    assert broker.requests == [(18, 4), (3, 9), (60, 2)]


def test_a_version_of_the_callers_choice_asks_for_no_announcement(broker: ScriptedBroker, client: WireClient) -> None:
    client.send(ApiKey.METADATA, Message(topics=[Message(name="echo")]), version=1)
    assert broker.requests == [(3, 1)]


def test_an_older_broker_is_asked_again_in_its_own_version(broker: ScriptedBroker, client: WireClient) -> None:
    def old(frame: bytes) -> bytes | None:
        if decode_request_header(frame).api_version > 2:
            only = Message(api_key=18, min_version=0, max_version=2)
            return framed(frame, Message(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[only]), version=0)
        return framed(frame, ANNOUNCED)

    broker.answer = old
    assert client.api_versions()[ApiKey.METADATA] == (0, 9)
    assert broker.requests == [(18, 4), (18, 2)]


def test_what_the_broker_does_not_offer_is_said_before_anything_is_sent(client: WireClient) -> None:
    with pytest.raises(ClientError, match="does not offer CreateTopics"):
        client.send(ApiKey.CREATE_TOPICS, Message())
    with pytest.raises(ClientError, match="versions 90 to 99, and versions 0 to 6"):
        client.send(ApiKey.INIT_PRODUCER_ID, Message())


def test_nobody_listening_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(UnreachableError, match=f"cannot connect to 127.0.0.1:{port}"):
        WireClient("127.0.0.1", port, timeout=1)


def test_a_broker_that_hangs_up_is_unreachable(broker: ScriptedBroker, client: WireClient) -> None:
    broker.answer = lambda frame: None
    with pytest.raises(UnreachableError, match="closed by the broker"):
        client.api_versions()


def test_a_broker_that_says_nothing_times_out(broker: ScriptedBroker) -> None:
    broker.answer = lambda frame: b""
    with (
        WireClient("127.0.0.1", broker.port, timeout=0.05) as client,
        pytest.raises(UnreachableError, match="did not answer ApiVersions within"),
    ):
        client.api_versions()


@pytest.mark.parametrize(
    "reply", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\4\0\0\0\x63", b"\0\0\0\7\0\0\0\1\0\0\xff"]
)
def test_nonsense_from_a_broker_is_a_malformed_response(
    broker: ScriptedBroker, client: WireClient, reply: bytes
) -> None:
    broker.answer = lambda frame: reply
    with pytest.raises(MalformedResponseError):
        client.api_versions()


# Opening: TLS and logins

NONCE = "rOprNGfwEbeRWgbNEkqO"
SCRAM_SHA_256 = (
    (f"n,,n=user,r={NONCE}", f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"),
    (
        f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
)
"""The exchange of RFC 7677, section 3: what the client says, and what it is answered."""


def accept_logins(mechanism: str, tokens: dict[bytes, bytes], *, lifetime_ms: int = 0) -> Answer:
    """A broker that answers each known token as recorded, and refuses others as Kafka does."""
    is_in = False

    def answer(frame: bytes) -> bytes | None:
        nonlocal is_in
        header = decode_request_header(frame)
        body = frame[header.body_position :]
        if header.api_key == ApiKey.SASL_HANDSHAKE:
            wanted = decode_request(17, header.api_version, body).mechanism
            return framed(frame, Message(error_code=0 if wanted == mechanism else 33, mechanisms=[mechanism]))
        if header.api_key == ApiKey.SASL_AUTHENTICATE:
            token = decode_request(36, header.api_version, body).auth_bytes
            if token not in tokens:
                text = "Authentication failed during authentication due to invalid credentials"
                return framed(frame, Message(error_code=58, error_message=text, auth_bytes=b"", session_lifetime_ms=0))
            is_in = True
            fields = {"error_code": 0, "error_message": None, "session_lifetime_ms": lifetime_ms}
            return framed(frame, Message(auth_bytes=tokens[token], **fields))
        return announce(frame) if is_in or header.api_key == ApiKey.API_VERSIONS else None

    return answer


@pytest.mark.parametrize(
    ("mechanism", "tokens", "authenticates"),
    [
        (PlainMechanism("alice", "secret"), {b"\0alice\0secret": b""}, 1),
        (
            ScramMechanism("SCRAM-SHA-256", "user", "pencil", nonce=NONCE),
            {ours.encode(): theirs.encode() for ours, theirs in SCRAM_SHA_256},
            2,
        ),
    ],
    ids=["PLAIN", "SCRAM-SHA-256"],
)
def test_a_login_comes_before_the_first_request(
    broker: ScriptedBroker, mechanism: SaslMechanism, tokens: dict[bytes, bytes], authenticates: int
) -> None:
    broker.answer = accept_logins(mechanism.name, tokens, lifetime_ms=60_000)
    with WireClient("127.0.0.1", broker.port, timeout=5, mechanism=mechanism) as client:
        assert client.send(ApiKey.DESCRIBE_CLUSTER, Message()).cluster_id == "here"
        assert client.session_lifetime_ms == 60_000
    assert broker.requests == [(18, 4), (17, 1), *[(36, 2)] * authenticates, (60, 2)]


@pytest.mark.parametrize(
    ("mechanism", "what"),
    [
        (PlainMechanism("alice", "wrong"), "cannot log in to .*: Authentication failed .* invalid credentials"),
        (ScramMechanism("SCRAM-SHA-512", "a", "b"), "does not accept SCRAM-SHA-512; it accepts PLAIN"),
    ],
)
def test_a_refused_login_is_an_error_with_kafkas_code(
    broker: ScriptedBroker, mechanism: SaslMechanism, what: str
) -> None:
    broker.answer = accept_logins("PLAIN", {b"\0alice\0secret": b""})
    with pytest.raises(ClientError, match=what) as refused:
        WireClient("127.0.0.1", broker.port, timeout=5, mechanism=mechanism)
    assert refused.value.error_code is ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_server_that_does_not_know_the_password_is_not_trusted(broker: ScriptedBroker) -> None:
    (first, second) = SCRAM_SHA_256
    forged = {first[0].encode(): first[1].encode(), second[0].encode(): b"v=Zm9yZ2Vk"}
    broker.answer = accept_logins("SCRAM-SHA-256", forged)
    with pytest.raises(ClientError, match="could not prove that it knows the password"):
        WireClient(
            "127.0.0.1",
            broker.port,
            timeout=5,
            mechanism=ScramMechanism("SCRAM-SHA-256", "user", "pencil", nonce=NONCE),
        )


def test_a_broker_too_old_for_our_login_is_told_apart_from_a_refusal(broker: ScriptedBroker) -> None:
    old = Message(api_keys=[Message(api_key=key, min_version=0, max_version=0) for key in (18, 17)])
    broker.answer = lambda frame: framed(frame, old)
    with pytest.raises(ClientError, match="offers SaslHandshake in versions 0 to 0, and versions 1 to 1") as refused:
        WireClient("127.0.0.1", broker.port, timeout=5, mechanism=PlainMechanism("a", "b"))
    assert refused.value.error_code is ErrorCode.UNSUPPORTED_VERSION


def test_tls_and_a_login_go_together() -> None:
    broker = ScriptedBroker(tls().server_context)
    broker.answer = accept_logins("PLAIN", {b"\0alice\0secret": b""})
    try:
        with WireClient(
            "127.0.0.1",
            broker.port,
            timeout=5,
            tls=tls().client_context,
            mechanism=PlainMechanism("alice", "secret"),
        ) as client:
            assert client.send(ApiKey.DESCRIBE_CLUSTER, Message()).cluster_id == "here"
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            WireClient("127.0.0.1", broker.port, timeout=5, tls=ssl.create_default_context())
    finally:
        broker.close()
