"""Server-sent events: what is on the wire, what a client reads from it, and how a client comes back."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.http.servers import PATIENCE_S, Source, app_of, serving

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.http.events import Event, encode_event, event_stream

texts = st.text(alphabet="ab :\n\r\u2028\x0b\x85é")
lines = st.text(alphabet="ab :\u2028\x0b\x85é")


def parse(wire: str) -> list[dict[str, str]]:
    """What the standard makes of a stream: fields of each event, data joined by newlines."""
    events = []
    for block in wire.split("\n\n")[:-1]:
        fields: dict[str, str] = {}
        for line in re.split(r"\r\n|\r|\n", block):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            fields[name] = f"{fields[name]}\n{value}" if name == "data" and "data" in fields else value
        events.append(fields)
    return events


@settings(deadline=None)
@given(texts, st.none() | lines, st.none() | lines, st.none() | st.integers(0, 10**6))
def test_a_client_reads_what_was_sent(data: str, id_: str | None, name: str | None, retry_ms: int | None) -> None:
    (read,) = parse(encode_event(Event(data, id=id_, event=name, retry_ms=retry_ms)).decode())
    sent = {"data": re.sub(r"\r\n|\r", "\n", data), "id": id_, "event": name}
    sent["retry"] = None if retry_ms is None else str(retry_ms)
    assert read == {key: value for key, value in sent.items() if value is not None}


@pytest.mark.parametrize("event", [Event("x", id="a\nb"), Event("x", id="a\0"), Event("x", event="a\rdata: y")])
def test_an_id_or_a_name_cannot_smuggle_in_other_fields(event: Event) -> None:
    with pytest.raises(ValueError, match="does not fit on one line"):
        encode_event(event)


async def count(call: Call) -> Answer:
    async def events() -> AsyncIterator[Event]:
        for number in range(int(call.last_event_id or 0) + 1, 4):
            yield Event(f"number {number}", id=str(number))

    return event_stream(events(), retry_ms=500)


COUNT = Endpoint(method="GET", path="/", handle=count, summary="")


def test_events_have_ids_and_a_client_comes_back_behind_the_last_one() -> None:
    with serving(app_of(COUNT)) as server:
        for header, ids in (("x: y", ["1", "2", "3"]), ("last-event-id: 2", ["3"])):
            with server.connect() as client:
                client.request("GET", "/", header)
                status, headers = client.head()
                assert (status, headers["cache-control"]) == (200, "no-store")
                assert headers["content-type"].startswith("text/event-stream")
                first, *events = parse("".join(iter(lambda: client.chunk().decode(), "")))
                assert first == {"retry": "500"}
                assert [event["id"] for event in events] == ids


def test_comments_keep_a_quiet_connection_alive_and_a_client_that_leaves_closes_the_source() -> None:
    source = Source()

    async def handle(_call: Call) -> Answer:
        async def events() -> AsyncIterator[Event]:
            async for piece in source.pieces():
                yield Event(piece.decode())

        return event_stream(events(), heartbeat_s=0.01)

    with serving(app_of(Endpoint(method="GET", path="/", handle=handle, summary=""))) as server:
        with server.connect() as client:
            client.request("GET", "/")
            client.head()
            assert [client.chunk() for _ in range(3)] == [b":\n\n"] * 3
            source.give(b"hello")
            while (chunk := client.chunk()) == b":\n\n":
                pass
            assert chunk == b"data: hello\n\n"
        assert source.closed.wait(PATIENCE_S)
