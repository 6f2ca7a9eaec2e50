"""Functions on URLs: their parts, decoded, and form encoding."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import SplitResult, quote_plus, unquote, unquote_plus, urlsplit

from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.functions.registry import BUILTIN

_URL = "URL"
_ILLEGAL = re.compile(r"[\s<>\"{}|\\^`\x00-\x1f]")


def _parse_url(url: str) -> SplitResult:
    if _ILLEGAL.search(url) or re.search(r"%(?![0-9a-fA-F]{2})", url):
        raise ExpressionError(f"not a URL: {url[:80]!r}")
    try:
        parts = urlsplit(url, allow_fragments=True)
        _ = parts.port
    except ValueError:
        raise ExpressionError(f"not a URL: {url[:80]!r}") from None
    return parts


def _fragment(url: str) -> str | None:
    parts = _parse_url(url)
    return unquote(parts.fragment) if "#" in url else None


def _query(url: str) -> str | None:
    parts = _parse_url(url)
    return unquote(parts.query) if "?" in url.split("#", 1)[0] else None


def _host(url: str) -> str | None:
    netloc = _parse_url(url).netloc.rpartition("@")[2]
    if netloc.startswith("["):
        return netloc.partition("]")[0] + "]"
    return netloc.partition(":")[0] or None


def _path(url: str) -> str | None:
    parts = _parse_url(url)
    return None if _is_opaque(url, parts) else unquote(parts.path)


def _is_opaque(url: str, parts: SplitResult) -> bool:
    """`mailto:a@b` has a scheme and no path."""
    return bool(parts.scheme) and not parts.netloc and not parts.path.startswith("/")


def _protocol(url: str) -> str | None:
    _parse_url(url)  # refuses what is no URL; the scheme itself is taken as it is written
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", url)
    return found[1] if found else None


for _name, _implementation, _about in (
    ("url_extract_fragment", _fragment, "The fragment of a URL, decoded."),
    ("url_extract_host", _host, "The host of a URL."),
    ("url_extract_path", _path, "The path of a URL, decoded."),
    ("url_extract_protocol", _protocol, "The protocol of a URL."),
    ("url_extract_query", _query, "The query of a URL, decoded."),
):
    _declared: Callable[[str], str | None] = _implementation
    _declared.__doc__ = _about
    BUILTIN.scalar(_name, "(input STRING) -> STRING", category=_URL)(_declared)


@BUILTIN.scalar("url_extract_port", "(input STRING) -> INTEGER", category=_URL)
def url_extract_port(url: str) -> int | None:
    """The port of a URL, NULL if it has none."""
    return _parse_url(url).port


@BUILTIN.scalar("url_extract_parameter", "(input STRING, parameter STRING) -> STRING", category=_URL)
def url_extract_parameter(url: str, name: str) -> str | None:
    """The value of a parameter in the query of a URL, decoded."""
    query = _query(url)
    for entry in (query or "").split("&"):
        key, sign, value = entry.partition("=")
        if key == name:
            return value if sign else None
    return None


@BUILTIN.scalar("url_decode_param", "(input STRING) -> STRING", category=_URL)
def url_decode_param(text: str) -> str:
    """A form-encoded text as plain text."""
    if re.search(r"%(?![0-9a-fA-F]{2})", text):
        raise ExpressionError(f"'{text[:80]}' has a % that no two hexadecimal digits follow")
    return unquote_plus(text)


@BUILTIN.scalar("url_encode_param", "(input STRING) -> STRING", category=_URL)
def url_encode_param(text: str) -> str:
    """A text in form encoding."""
    return quote_plus(text, safe="*-._").replace("~", "%7E")
