"""The request client against a scripted broker: what it picks, what it refuses, how it fails."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from moldau.client.errors import ClientError, UnreachableError
from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey, MalformedResponseError, decode_request_header, encode_response_header
from moldau.protocol.messages import Message, decode_request, encode_response

Answer = Callable[[bytes], bytes | None]


class ScriptedBroker:
    """Answers each frame of one connection with what `answer` returns; `None` hangs up."""

    def __init__(self) -> None:
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


RANGES = [(18, 0, 4), (3, 0, 9), (60, 0, 99), (22, 90, 99)]
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
    with pytest.raises(ClientError, match="90-99, we know 0-6"):
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
