from __future__ import annotations

import pytest

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, Routes, WebSocketEndpoint
from moldau.http.errors import HttpError
from moldau.http.sockets import Socket


async def nothing(_call: Call) -> Answer:
    return Answer()


def routes(*paths: str) -> Routes:
    return Routes(Endpoint(method="GET", path=path, handle=nothing, summary="") for path in paths)


TABLE = routes("/", "/a", "/a/{x}", "/a/{x}/b", "/a/fixed", "/a/{x}/{y}/c")


@pytest.mark.parametrize(
    ("path", "found", "parts"),
    [
        (b"/", "/", {}),
        (b"", "/", {}),
        (b"/a", "/a", {}),
        (b"/a/", "/a", {}),
        (b"/a/one", "/a/{x}", {"x": "one"}),
        (b"/a/fixed", "/a/fixed", {}),
        (b"/a/fixed/b", "/a/{x}/b", {"x": "fixed"}),
        (b"/a/o%2Fne/b", "/a/{x}/b", {"x": "o/ne"}),
        (b"/a/%252F", "/a/{x}", {"x": "%2F"}),
        (b"/a/%C3%BC", "/a/{x}", {"x": "ü"}),
        (b"/a//b", "/a/{x}/b", {"x": ""}),
        (b"/a/1/2/c", "/a/{x}/{y}/c", {"x": "1", "y": "2"}),
    ],
)
def test_paths_lead_to_endpoints_by_their_encoded_parts(path: bytes, found: str, parts: dict[str, str]) -> None:
    answer = TABLE.find("GET", path)
    assert (answer.endpoints[0].path, answer.parts) == (found, parts)
    assert TABLE.find("HEAD", path).endpoints[0].path == found


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", b"/b", 404), ("GET", b"/a/1/2", 404), ("POST", b"/a", 405), ("GET", b"/a/%ff", 400)],
)
def test_what_is_not_there_is_told_from_what_may_not_be_done(method: str, path: bytes, status: int) -> None:
    with pytest.raises(HttpError) as caught:
        TABLE.find(method, path)
    assert caught.value.status == status


def test_a_socket_and_an_endpoint_may_share_a_path() -> None:
    async def talk(_socket: Socket) -> None:
        return None

    table = Routes(
        [
            Endpoint(method="POST", path="/a/{x}", handle=nothing, summary=""),
            WebSocketEndpoint(path="/a/{x}", handle=talk, summary=""),
        ]
    )
    assert table.find_socket(b"/a/1").parts == table.find("POST", b"/a/1").parts == {"x": "1"}
    with pytest.raises(HttpError) as caught:
        table.find("GET", b"/a/1")
    assert caught.value.status == 426


def test_one_path_has_one_set_of_names() -> None:
    with pytest.raises(ValueError, match="other names for its parts"):
        routes("/a/{x}", "/a/{y}")
