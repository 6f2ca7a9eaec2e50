"""Streams through a real server: pieces as they come, clients that go away, stall or send for ever."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator

import pytest
from tests.unit.http.servers import PATIENCE_S, Source, app_of, serving

from moldau.core.errors import MoldauError
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.http.streaming import json_array, json_lines, with_heartbeats


def stream_endpoint(source: Source, *, is_endless: bool = False) -> Endpoint:
    handle = source.handler(media_type="text/plain", is_endless=is_endless)
    return Endpoint(method="GET", path="/", handle=handle, summary="")


def test_each_piece_is_sent_when_it_is_there() -> None:
    source = Source()
    with serving(app_of(stream_endpoint(source))) as server, server.connect() as client:
        client.request("GET", "/")
        status, headers = client.head()
        assert (status, headers["transfer-encoding"]) == (200, "chunked")
        for piece in (b"one", b"two"):
            source.give(piece)
            assert client.chunk() == piece
        source.give(None)
        assert client.chunk() == b""
        assert source.closed.wait(PATIENCE_S)


def test_a_client_that_goes_away_closes_the_generator() -> None:
    source = Source()
    with serving(app_of(stream_endpoint(source))) as server:
        with server.connect() as client:
            client.request("GET", "/")
            source.give(b"one")
            client.head()
            assert client.chunk() == b"one"
            assert not source.closed.is_set()
        assert source.closed.wait(PATIENCE_S), "it waits for the next piece, and is closed there"


def test_a_client_that_goes_away_is_noticed_behind_a_request_that_waits_in_line() -> None:
    source = Source()
    with serving(app_of(stream_endpoint(source))) as server:
        with server.connect() as client:
            client.request("GET", "/")
            source.give(b"one")
            client.head()
            client.request("GET", "/nothing")
            assert client.chunk() == b"one"
            source.give(b"two")
            assert client.chunk() == b"two"
        assert source.closed.wait(PATIENCE_S)


def test_a_generator_that_never_waits_lets_others_have_their_turn_and_is_closed() -> None:
    closed = threading.Event()

    async def endless(_call: Call) -> Answer:
        async def pieces() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b""
            finally:
                closed.set()

        return Answer(stream=pieces())

    async def hello(_call: Call) -> Answer:
        return Answer("hello")

    app = app_of(
        Endpoint(method="GET", path="/endless", handle=endless, summary=""),
        Endpoint(method="GET", path="/hello", handle=hello, summary=""),
    )
    with serving(app) as server:
        with server.connect() as client, server.connect() as other:
            client.request("GET", "/endless")
            client.head()
            other.request("GET", "/hello")
            assert other.head()[0] == 200
        assert closed.wait(PATIENCE_S)


def test_a_client_that_does_not_read_holds_the_generator_back() -> None:
    given = 0
    closed = threading.Event()

    async def flood(_call: Call) -> Answer:
        async def pieces() -> AsyncIterator[bytes]:
            nonlocal given
            try:
                while True:
                    given += 1
                    yield b"x" * 65536
            finally:
                closed.set()

        return Answer(stream=pieces())

    with serving(app_of(Endpoint(method="GET", path="/", handle=flood, summary=""))) as server:
        with server.connect() as client:
            client.request("GET", "/")
            client.head()
            before = -1
            while before != given:
                before = given
                server.run(asyncio.sleep(0.2))
            assert given * 65536 < 64 * 1024 * 1024, "no more than the sockets' buffers hold"
            assert client.chunk()
        assert closed.wait(PATIENCE_S)


@pytest.mark.parametrize("error", [ZeroDivisionError("secret"), MoldauError("the topic is gone")])
def test_a_generator_that_fails_cuts_the_connection(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    source = Source()
    with serving(app_of(stream_endpoint(source))) as server, server.connect() as client:
        client.request("GET", "/")
        source.give(b"one")
        source.give(error)
        client.head()
        assert client.chunk() == b"one"
        with pytest.raises(ConnectionError):
            client.chunk()
    (record,) = [one for one in caplog.records if one.name == "moldau.http"]
    assert str(error) in record.getMessage()
    assert bool(record.exc_info) is not isinstance(error, MoldauError)


def test_a_server_that_stops_ends_an_endless_stream_at_once_and_in_order() -> None:
    source = Source()
    with serving(app_of(stream_endpoint(source, is_endless=True)), drain_s=600) as server, server.connect() as client:
        client.request("GET", "/")
        source.give(b"one")
        client.head()
        assert client.chunk() == b"one"
        server.stop()
        assert client.chunk() == b""
        assert source.closed.is_set()


def test_a_server_that_stops_cuts_a_stream_that_does_not_end(caplog: pytest.LogCaptureFixture) -> None:
    source = Source()
    with serving(app_of(stream_endpoint(source)), drain_s=0) as server, server.connect() as client:
        client.request("GET", "/")
        source.give(b"one")
        client.head()
        assert client.chunk() == b"one"
        server.stop()
        with pytest.raises(ConnectionError):
            client.chunk()
        assert source.closed.is_set()
    assert not [record for record in caplog.records if record.exc_info], "no traceback for a stop"


def test_head_sends_no_body_and_starts_no_generator() -> None:
    source = Source()
    with serving(app_of(stream_endpoint(source))) as server, server.connect() as client:
        client.request("HEAD", "/", "connection: close")
        assert client.head()[0] == 200
        assert client.read() == b""
        assert not source.begun.is_set()


# Streams in both directions


def doubling(*, max_object_bytes: int = 1000, **options: object) -> Endpoint:
    """As REST v3 produces: objects in, receipts out, on one request."""

    async def handle(call: Call) -> Answer:
        async def receipts() -> AsyncIterator[object]:
            try:
                async for number in call.objects(max_object_bytes=max_object_bytes):
                    yield {"twice": number["n"] * 2}
            except MoldauError as error:
                yield {"error": str(error)}

        return Answer(stream=json_lines(receipts()))

    return Endpoint(method="POST", path="/", handle=handle, summary="", is_stream=True, **options)  # type: ignore[arg-type]


def test_receipts_come_back_while_objects_are_still_sent() -> None:
    with serving(app_of(doubling())) as server, server.connect() as client:
        client.request("POST", "/", "transfer-encoding: chunked")
        client.send_chunk(b'{"n":1}{"n":')
        assert client.head()[0] == 200
        assert json.loads(client.chunk()) == {"twice": 2}
        client.send_chunk(b'2}\n{"n":3}')
        assert [json.loads(client.chunk()) for _ in range(2)] == [{"twice": 4}, {"twice": 6}]
        client.send_chunk(b"")
        assert client.chunk() == b""


@pytest.mark.parametrize(
    ("wire", "error"),
    [
        (b'{"n":1}[', "expected an object"),
        (b'{"n":1}{"n":01}', "Malformed JSON"),
        (b'{"n":1}{"n":"' + b"x" * 2000, "larger than 1000 bytes"),
    ],
)
def test_a_bad_object_ends_the_stream_after_the_receipts_before_it(wire: bytes, error: str) -> None:
    with serving(app_of(doubling())) as server, server.connect() as client:
        client.request("POST", "/", "transfer-encoding: chunked")
        client.send_chunk(wire)
        client.head()
        assert json.loads(client.chunk()) == {"twice": 2}
        assert error in json.loads(client.chunk())["error"]
        assert client.chunk() == b""


def test_a_client_that_goes_away_in_the_middle_of_its_stream_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    ended = threading.Event()

    async def handle(call: Call) -> Answer:
        async def receipts() -> AsyncIterator[object]:
            try:
                async for number in call.objects():
                    yield number
            finally:
                ended.set()

        return Answer(stream=json_lines(receipts()))

    app = app_of(Endpoint(method="POST", path="/", handle=handle, summary="", is_stream=True))
    with serving(app) as server:
        with server.connect() as client:
            client.request("POST", "/", "transfer-encoding: chunked")
            client.send_chunk(b'{"n":1}{"n":')
            client.head()
            client.chunk()
        assert ended.wait(PATIENCE_S)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_client_that_goes_away_is_noticed_by_a_handler_that_does_not_read() -> None:
    closed = threading.Event()

    async def handle(call: Call) -> Answer:
        async def receipts() -> AsyncIterator[object]:
            try:
                async for number in call.objects():
                    yield number
                    await asyncio.Event().wait()
            finally:
                closed.set()

        return Answer(stream=json_lines(receipts()))

    app = app_of(Endpoint(method="POST", path="/", handle=handle, summary="", is_stream=True))
    with serving(app) as server:
        with server.connect() as client:
            client.request("POST", "/", "transfer-encoding: chunked")
            client.send_chunk(b'{"n":1}')
            client.head()
            client.chunk()
        assert closed.wait(PATIENCE_S)


def test_a_handler_that_does_not_read_holds_its_client_back() -> None:
    may_read = threading.Event()
    read = 0

    async def handle(call: Call) -> Answer:
        nonlocal read
        await asyncio.to_thread(may_read.wait, PATIENCE_S)
        async for piece in call.stream():
            read += len(piece)
        return Answer(read)

    sent = 0
    app = app_of(Endpoint(method="POST", path="/", handle=handle, summary="", is_stream=True))
    with serving(app) as server, server.connect() as client:
        client.request("POST", "/", f"content-length: {1 << 30}", "connection: close")
        client.socket.settimeout(1.0)
        with contextlib.suppress(TimeoutError):
            while sent < 1 << 30:
                sent += client.socket.send(b"x" * 65536)
        assert sent < 64 << 20, "no more than the sockets' buffers hold"
        may_read.set()


# Half bodies and slow bodies of plain endpoints


async def length(call: Call) -> Answer:
    return Answer(len(await call.content()))


LENGTH = Endpoint(method="POST", path="/", handle=length, summary="", body={})


def test_a_body_that_stalls_is_refused_and_its_connection_closed() -> None:
    with serving(app_of(LENGTH, body_idle_s=0.2)) as server, server.connect() as client:
        client.request("POST", "/", "content-length: 10")
        client.send(b"half")
        status, headers = client.head()
        assert (status, headers["connection"]) == (408, "close")
        assert json.loads(client.read())["error_code"] == 408


def test_a_client_that_leaves_half_a_body_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    left = threading.Event()

    async def handle(call: Call) -> Answer:
        try:
            return await length(call)
        finally:
            left.set()

    app = app_of(Endpoint(method="POST", path="/", handle=handle, summary="", body={}))
    with serving(app) as server:
        with server.connect() as client:
            client.request("POST", "/", "content-length: 10")
            client.send(b"half")
        assert left.wait(PATIENCE_S)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_chunked_body_is_refused_at_its_limit_and_not_at_its_end() -> None:
    with serving(app_of(LENGTH, max_body_bytes=1000)) as server, server.connect() as client:
        client.request("POST", "/", "transfer-encoding: chunked")
        for _ in range(3):
            client.send_chunk(b"x" * 500)
        assert client.head()[0] == 413


def test_a_stream_may_have_limits_of_its_own() -> None:
    app = app_of(doubling(max_body_bytes=20, body_idle_s=0.2))
    with serving(app) as server:
        with server.connect() as client:
            client.request("POST", "/", "transfer-encoding: chunked")
            client.send_chunk(b'{"n":1}' * 5)
            client.head()
            assert "larger than 20 bytes" in json.loads(client.chunk())["error"]
        with server.connect() as client:
            client.request("POST", "/", "transfer-encoding: chunked")
            client.head()
            assert "Nothing of the body arrived" in json.loads(client.chunk())["error"]


# Forms


def collect(stream: AsyncIterator[bytes]) -> list[bytes]:
    async def run() -> list[bytes]:
        return [piece async for piece in stream]

    return asyncio.run(run())


async def documents(count: int) -> AsyncIterator[object]:
    for number in range(count):
        yield {"n": number}


@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_array_is_written_element_by_element(count: int) -> None:
    assert json.loads(b"".join(collect(json_array(documents(count))))) == [{"n": n} for n in range(count)]


def test_lines_are_one_document_each() -> None:
    assert collect(json_lines(documents(2))) == [b'{"n":0}\n', b'{"n":1}\n']


def test_heartbeats_come_only_while_nothing_else_does() -> None:
    async def story() -> list[bytes]:
        beats = 0

        async def slow() -> AsyncIterator[bytes]:
            yield b"one"
            while beats < 2:
                await asyncio.sleep(0.001)
            yield b"two"

        seen = []
        async for piece in with_heartbeats(slow(), b"\n", every_s=0.005):
            beats += piece == b"\n"
            seen.append(piece)
        return seen

    seen = asyncio.run(story())
    assert (seen[0], seen[-1]) == (b"one", b"two")
    assert set(seen[1:-1]) == {b"\n"}


def test_a_source_under_heartbeats_is_closed_with_them() -> None:
    async def story() -> bool:
        is_closed = False

        async def source() -> AsyncIterator[bytes]:
            nonlocal is_closed
            try:
                await asyncio.Event().wait()
                yield b""
            finally:
                is_closed = True

        stream = with_heartbeats(source(), b"\n", every_s=0.001)
        assert await anext(stream) == b"\n"
        await stream.aclose()
        return is_closed

    assert asyncio.run(story())
