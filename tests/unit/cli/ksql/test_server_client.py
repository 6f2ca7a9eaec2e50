"""The client of a ksql server: elements of a stream however it is cut, addresses, credentials."""

from __future__ import annotations

import pytest

from moldau.cli.ksql.server_client import Credentials, KsqlServerClient, ServerAwayError, split_elements
from moldau.core.errors import MoldauError

BODY = b'[{"header":{"a":"}"}},\n\n{"row":{"columns":[1,"],"]}},\n{"finalMessage":"x"}]\n'
ELEMENTS = [b'{"header":{"a":"}"}}', b'{"row":{"columns":[1,"],"]}}', b'{"finalMessage":"x"}']


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_elements_do_not_depend_on_how_the_bytes_are_cut(size: int) -> None:
    pieces = [BODY[start : start + size] for start in range(0, len(BODY), size)]

    assert list(split_elements(iter(pieces))) == ELEMENTS


def test_an_element_is_given_before_the_next_begins() -> None:
    elements = split_elements(iter([b'[{"header":{}}', b',\n{"row":{"columns":[1]}}', b"\n", b"]"]))

    assert list(elements) == [b'{"header":{}}', b'{"row":{"columns":[1]}}']


def test_a_password_in_the_address_is_not_shown() -> None:
    assert KsqlServerClient("http://me:secret@host:1/").url == "http://host:1"
    assert KsqlServerClient("host:8088").url == "http://host:8088"


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://x:banana"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(MoldauError, match="is not the address of a server"):
        KsqlServerClient(url)


def test_credentials_become_a_header_and_do_not_print() -> None:
    assert Credentials("a", "b").headers() == {"Authorization": "Basic YTpi"}
    assert Credentials(token="t").headers() == {"Authorization": "Bearer t"}
    assert "b'" not in repr(Credentials("a", "b'"))


def test_a_server_that_is_away_is_one_clear_line() -> None:
    with pytest.raises(ServerAwayError, match=r"^The server at http://127\.0\.0\.1:1 cannot be reached"):
        KsqlServerClient("http://127.0.0.1:1").info()
