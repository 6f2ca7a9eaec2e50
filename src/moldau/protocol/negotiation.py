"""Version negotiation: decodes ApiVersions and chooses the version of each API. Pure.

Every client first sends ApiVersions, in the newest version it knows; a broker that does not support that version
responds with an error in version 0, with the versions it supports. Start at `OfferedApis`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import moldau
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.api import APIS, ApiKey, MalformedResponseError
from moldau.protocol.messages import Message, decode_response

__all__ = ["NEWEST_API_VERSIONS", "OfferedApis", "UnsupportedApiError", "api_versions_request", "decode_api_versions"]

NEWEST_API_VERSIONS = APIS[ApiKey.API_VERSIONS].last

_CORRELATION_ID_BYTES = 4
"""The response header of ApiVersions, in every version of it."""


class UnsupportedApiError(MoldauError):
    """The broker does not offer an API, or no version of it that this client supports."""

    code = ErrorCode.UNSUPPORTED_VERSION


@dataclass(frozen=True, slots=True)
class OfferedApis:
    """The lowest and the highest version of each API that one broker offers, by API key."""

    address: str
    ranges: Mapping[int, tuple[int, int]]

    def version_for(self, api_key: int, *, at_least: int = 0) -> int:
        """The highest version that both sides support; raises `UnsupportedApiError`."""
        name, known, offered = ApiKey(api_key).display_name, APIS[api_key], self.ranges.get(api_key)
        if offered is None:
            raise UnsupportedApiError(f"{self.address} does not offer {name}")
        version = min(known.last, offered[1])
        first = max(known.first, at_least)
        if version < max(first, offered[0]):
            raise UnsupportedApiError(
                f"{self.address} offers {name} in versions {offered[0]} to {offered[1]}, "
                f"and versions {first} to {known.last} are supported here"
            )
        return version


def api_versions_request() -> Message:
    return Message(client_software_name="moldau", client_software_version=moldau.__version__)


def decode_api_versions(address: str, version: int, frame: bytes | bytearray) -> OfferedApis | int:
    """What a broker offers, or the lower version to retry with. `frame` is without its length."""
    error_code = int.from_bytes(frame[_CORRELATION_ID_BYTES : _CORRELATION_ID_BYTES + 2], "big", signed=True)
    if version and error_code == ErrorCode.UNSUPPORTED_VERSION:
        reply = decode_response(ApiKey.API_VERSIONS, 0, frame[_CORRELATION_ID_BYTES:])
        own = next((api.max_version for api in reply.api_keys if api.api_key == ApiKey.API_VERSIONS), 0)
        return max(0, min(int(own), version - 1))
    reply = decode_response(ApiKey.API_VERSIONS, version, frame[_CORRELATION_ID_BYTES:])
    if reply.error_code:
        raise MalformedResponseError(f"{address} answered ApiVersions with error {reply.error_code}")
    return OfferedApis(address, {api.api_key: (api.min_version, api.max_version) for api in reply.api_keys})
