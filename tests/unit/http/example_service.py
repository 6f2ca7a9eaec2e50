"""A service with everything the kit has; docs/http-kit.md explains it line by line."""

from collections.abc import AsyncIterator

from moldau.http.auth import BasicCredentials, Credentials, Principal, UnauthenticatedError
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import AnyEndpoint, Endpoint, WebSocketEndpoint
from moldau.http.events import EVENTS, Event, event_stream
from moldau.http.metrics import HttpMetrics
from moldau.http.service import build_app
from moldau.http.sockets import Socket
from moldau.http.streaming import json_lines


async def authenticate(credentials: Credentials) -> Principal:
    if isinstance(credentials, BasicCredentials) and credentials.password == "secret":
        return Principal(credentials.user)
    raise UnauthenticatedError


async def greet(call: Call) -> Answer:
    return Answer({"hello": call.parts["name"], "from": str(call.principal)})


async def double(call: Call) -> Answer:
    return Answer(stream=json_lines({"twice": number["n"] * 2} async for number in call.objects()))


async def tick(call: Call) -> Answer:
    async def ticks() -> AsyncIterator[Event]:
        for number in range(int(call.last_event_id or 0) + 1, 4):
            yield Event(f"tick {number}", id=str(number))

    return event_stream(ticks())


async def echo(socket: Socket) -> None:
    await socket.accept()
    async for message in socket:
        await socket.send_text(f"you said {message!r}")


ENDPOINTS: list[AnyEndpoint] = [
    Endpoint(method="GET", path="/greetings/{name}", handle=greet, summary="A greeting.", reply={"type": "object"}),
    Endpoint(method="POST", path="/doubles", handle=double, summary="Numbers, doubled.", is_stream=True),
    Endpoint(method="GET", path="/ticks", handle=tick, summary="Three ticks.", media_types=EVENTS),
    WebSocketEndpoint(path="/echo", handle=echo, summary="What you say."),
]
app = build_app(ENDPOINTS, title="example", authenticate=authenticate, metrics=HttpMetrics("example"))
