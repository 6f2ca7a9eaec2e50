"""Credentials are read, handed to the hook, and whoever is refused hears it in the service's shape."""

from __future__ import annotations

import base64

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from tests.unit.http.servers import app_of

from moldau.http.auth import (
    BasicCredentials,
    BearerCredentials,
    Credentials,
    ForbiddenError,
    Principal,
    UnauthenticatedError,
    parse_credentials,
)
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, WebSocketEndpoint
from moldau.http.sockets import Socket


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("header", "credentials"),
    [
        (None, None),
        ("", None),
        (basic("alice:secret"), BasicCredentials("alice", "secret")),
        (basic("älice:pass:word").replace("Basic", "bAsIc"), BasicCredentials("älice", "pass:word")),
        (basic(":"), BasicCredentials("", "")),
        ("Bearer abc.def", BearerCredentials("abc.def")),
    ],
)
def test_credentials_are_read(header: str | None, credentials: Credentials) -> None:
    assert parse_credentials(header) == credentials


@pytest.mark.parametrize("header", ["Basic", "Basic ???", basic("alice"), "Basic /w==", "Bearer", "Digest a=b", " x"])
def test_credentials_that_cannot_be_read_are_a_401(header: str) -> None:
    with pytest.raises(UnauthenticatedError) as caught:
        parse_credentials(header)
    assert caught.value.headers["www-authenticate"].startswith("Basic realm=")


def test_secrets_are_not_printed() -> None:
    assert "secret" not in repr(BasicCredentials("alice", "secret")) + repr(BearerCredentials("secret"))


async def authenticate(credentials: Credentials) -> Principal:
    if not isinstance(credentials, BasicCredentials) or credentials.password != "secret":
        raise UnauthenticatedError
    if credentials.user == "mallory":
        raise ForbiddenError
    return Principal(credentials.user)


async def who(call: Call) -> Answer:
    return Answer(str(call.principal))


async def who_in_socket(socket: Socket) -> None:
    await socket.accept()
    await socket.send_text(str(socket.principal))


CLIENT = TestClient(
    app_of(
        Endpoint(method="GET", path="/who", handle=who, summary="", state_token=lambda: 1),
        Endpoint(method="GET", path="/healthz", handle=who, summary="", is_public=True),
        WebSocketEndpoint(path="/socket", handle=who_in_socket, summary=""),
        authenticate=authenticate,
    )
)


@pytest.mark.parametrize("path", ["/who", "/nothing"])
def test_nobody_gets_in_without_credentials_and_learns_no_paths(path: str) -> None:
    answer = CLIENT.get(path)
    assert (answer.status_code, answer.json()["error_code"]) == (401, 401)
    assert answer.headers["www-authenticate"].startswith("Basic")


def test_a_known_caller_may_be_forbidden() -> None:
    assert CLIENT.get("/who", headers={"authorization": basic("mallory:secret")}).status_code == 403


def test_the_handler_knows_who_calls_and_cached_answers_belong_to_one_caller() -> None:
    for user in ("alice", "bob", "alice"):
        assert CLIENT.get("/who", headers={"authorization": basic(f"{user}:secret")}).json() == f"User:{user}"


def test_a_public_endpoint_asks_nobody() -> None:
    assert CLIENT.get("/healthz").json() == "User:ANONYMOUS"
    assert CLIENT.get("/healthz", headers={"authorization": "nonsense"}).status_code == 200


def test_a_socket_asks_too() -> None:
    with CLIENT.websocket_connect("/socket", headers={"authorization": basic("alice:secret")}) as socket:
        assert socket.receive_text() == "User:alice"
    with pytest.raises(WebSocketDisconnect) as caught, CLIENT.websocket_connect("/socket"):
        pass
    assert getattr(caught.value, "status_code", 401) == 401
