"""The APIs of Kafka's protocol: keys, the versions with schemas, and the request and response headers.

The broker's router decides which versions are announced; the bodies are `protocol.messages`.
Start at `ApiKey` and `decode_request_header`.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.field_reader import DAMAGE, Cursor, skip_tags

__all__ = [
    "APIS",
    "ApiKey",
    "ApiVersions",
    "MalformedRequestError",
    "MalformedResponseError",
    "RequestHeader",
    "decode_request_header",
    "decode_response_header",
    "encode_request_header",
    "encode_response_header",
    "is_flexible",
    "request_header_version",
    "response_header_version",
]


class MalformedRequestError(MoldauError):
    """Bytes that are not a valid request. It cannot be answered: the connection is closed."""

    code = ErrorCode.INVALID_REQUEST


class MalformedResponseError(MoldauError):
    """Bytes from a broker that are not a valid response to the request."""

    code = ErrorCode.CORRUPT_MESSAGE


class ApiKey(IntEnum):
    """Kafka's names. 4 to 7 were used between brokers of ZooKeeper clusters and have been removed."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92

    @property
    def display_name(self) -> str:
        """As Kafka's tools and logs print it: `ListOffsets`."""
        return "".join(word.capitalize() for word in self.name.split("_"))


class ApiVersions(NamedTuple):
    """The supported versions of one API, and the first flexible one among them."""

    first: int
    last: int
    flexible_from: int


_NEVER: Final = 32_768

APIS: Final[dict[int, ApiVersions]] = {
    ApiKey.PRODUCE: ApiVersions(3, 13, 9),
    ApiKey.FETCH: ApiVersions(4, 18, 12),
    ApiKey.LIST_OFFSETS: ApiVersions(1, 11, 6),
    ApiKey.METADATA: ApiVersions(0, 13, 9),
    ApiKey.OFFSET_COMMIT: ApiVersions(2, 10, 8),
    ApiKey.OFFSET_FETCH: ApiVersions(1, 10, 6),
    ApiKey.FIND_COORDINATOR: ApiVersions(0, 6, 3),
    ApiKey.JOIN_GROUP: ApiVersions(0, 9, 6),
    ApiKey.HEARTBEAT: ApiVersions(0, 4, 4),
    ApiKey.LEAVE_GROUP: ApiVersions(0, 5, 4),
    ApiKey.SYNC_GROUP: ApiVersions(0, 5, 4),
    ApiKey.DESCRIBE_GROUPS: ApiVersions(0, 6, 5),
    ApiKey.LIST_GROUPS: ApiVersions(0, 5, 3),
    ApiKey.SASL_HANDSHAKE: ApiVersions(0, 1, _NEVER),
    ApiKey.API_VERSIONS: ApiVersions(0, 4, 3),
    ApiKey.CREATE_TOPICS: ApiVersions(2, 7, 5),
    ApiKey.DELETE_TOPICS: ApiVersions(1, 6, 4),
    ApiKey.DELETE_RECORDS: ApiVersions(0, 2, 2),
    ApiKey.INIT_PRODUCER_ID: ApiVersions(0, 6, 2),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ApiVersions(2, 4, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: ApiVersions(0, 5, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: ApiVersions(0, 4, 3),
    ApiKey.END_TXN: ApiVersions(0, 5, 3),
    ApiKey.WRITE_TXN_MARKERS: ApiVersions(1, 2, 1),
    ApiKey.TXN_OFFSET_COMMIT: ApiVersions(0, 5, 3),
    ApiKey.DESCRIBE_ACLS: ApiVersions(1, 3, 2),
    ApiKey.CREATE_ACLS: ApiVersions(1, 3, 2),
    ApiKey.DELETE_ACLS: ApiVersions(1, 3, 2),
    ApiKey.DESCRIBE_CONFIGS: ApiVersions(1, 4, 4),
    ApiKey.ALTER_CONFIGS: ApiVersions(0, 2, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: ApiVersions(1, 2, 2),
    ApiKey.DESCRIBE_LOG_DIRS: ApiVersions(1, 5, 2),
    ApiKey.SASL_AUTHENTICATE: ApiVersions(0, 2, 2),
    ApiKey.CREATE_PARTITIONS: ApiVersions(0, 3, 2),
    ApiKey.CREATE_DELEGATION_TOKEN: ApiVersions(1, 3, 2),
    ApiKey.RENEW_DELEGATION_TOKEN: ApiVersions(1, 2, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: ApiVersions(1, 2, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: ApiVersions(1, 3, 2),
    ApiKey.DELETE_GROUPS: ApiVersions(0, 2, 2),
    ApiKey.ELECT_LEADERS: ApiVersions(0, 2, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ApiVersions(0, 1, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ApiVersions(0, 1, 0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ApiVersions(0, 0, 0),
    ApiKey.OFFSET_DELETE: ApiVersions(0, 0, _NEVER),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: ApiVersions(0, 1, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: ApiVersions(0, 1, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: ApiVersions(0, 0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ApiVersions(0, 0, 0),
    ApiKey.VOTE: ApiVersions(0, 2, 0),
    ApiKey.BEGIN_QUORUM_EPOCH: ApiVersions(0, 1, 1),
    ApiKey.END_QUORUM_EPOCH: ApiVersions(0, 1, 1),
    ApiKey.DESCRIBE_QUORUM: ApiVersions(0, 2, 0),
    ApiKey.ALTER_PARTITION: ApiVersions(2, 3, 2),
    ApiKey.UPDATE_FEATURES: ApiVersions(0, 2, 0),
    ApiKey.ENVELOPE: ApiVersions(0, 0, 0),
    ApiKey.FETCH_SNAPSHOT: ApiVersions(0, 1, 0),
    ApiKey.DESCRIBE_CLUSTER: ApiVersions(0, 2, 0),
    ApiKey.DESCRIBE_PRODUCERS: ApiVersions(0, 0, 0),
    ApiKey.BROKER_REGISTRATION: ApiVersions(0, 4, 0),
    ApiKey.BROKER_HEARTBEAT: ApiVersions(0, 2, 0),
    ApiKey.UNREGISTER_BROKER: ApiVersions(0, 0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: ApiVersions(0, 0, 0),
    ApiKey.LIST_TRANSACTIONS: ApiVersions(0, 2, 0),
    ApiKey.ALLOCATE_PRODUCER_IDS: ApiVersions(0, 0, 0),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ApiVersions(0, 1, 0),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ApiVersions(0, 1, 0),
    ApiKey.CONTROLLER_REGISTRATION: ApiVersions(0, 0, 0),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: ApiVersions(0, 0, 0),
    ApiKey.PUSH_TELEMETRY: ApiVersions(0, 0, 0),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: ApiVersions(0, 0, 0),
    ApiKey.LIST_CONFIG_RESOURCES: ApiVersions(0, 1, 0),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ApiVersions(0, 0, 0),
    ApiKey.SHARE_GROUP_HEARTBEAT: ApiVersions(1, 1, 1),
    ApiKey.SHARE_GROUP_DESCRIBE: ApiVersions(1, 1, 1),
    ApiKey.SHARE_FETCH: ApiVersions(1, 2, 1),
    ApiKey.SHARE_ACKNOWLEDGE: ApiVersions(1, 2, 1),
    ApiKey.ADD_RAFT_VOTER: ApiVersions(0, 1, 0),
    ApiKey.REMOVE_RAFT_VOTER: ApiVersions(0, 0, 0),
    ApiKey.UPDATE_RAFT_VOTER: ApiVersions(0, 0, 0),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: ApiVersions(0, 0, 0),
    ApiKey.READ_SHARE_GROUP_STATE: ApiVersions(0, 0, 0),
    ApiKey.WRITE_SHARE_GROUP_STATE: ApiVersions(0, 1, 0),
    ApiKey.DELETE_SHARE_GROUP_STATE: ApiVersions(0, 0, 0),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: ApiVersions(0, 1, 0),
    ApiKey.STREAMS_GROUP_HEARTBEAT: ApiVersions(0, 0, 0),
    ApiKey.STREAMS_GROUP_DESCRIBE: ApiVersions(0, 0, 0),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: ApiVersions(0, 1, 0),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: ApiVersions(0, 0, 0),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: ApiVersions(0, 0, 0),
}


def is_flexible(api_key: int, version: int) -> bool:
    """Whether this version has compact lengths and tagged fields; an unknown API counts as classic."""
    known = APIS.get(api_key)
    return known is not None and version >= known.flexible_from


def request_header_version(api_key: int, version: int) -> int:
    return 2 if is_flexible(api_key, version) else 1


def response_header_version(api_key: int, version: int) -> int:
    """ApiVersions always uses version 0: its response must be readable before versions are negotiated."""
    return 1 if is_flexible(api_key, version) and api_key != ApiKey.API_VERSIONS else 0


class RequestHeader(NamedTuple):
    api_key: int
    """As sent: it may be an undefined key."""
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int
    """Where the body begins, counted from the beginning of the header."""


_REQUEST_START: Final = struct.Struct(">hhih")
_NULL_SIZE: Final = -1


def decode_request_header(frame: bytes | bytearray | memoryview) -> RequestHeader:
    """Read the header at the start of a frame, without its size prefix.

    The client id has its classic form in every version, so it can be read even if the version is unknown.
    """
    try:
        api_key, api_version, correlation_id, size = _REQUEST_START.unpack_from(frame)
    except struct.error:
        raise MalformedRequestError(f"the request has {len(frame)} bytes and ends within its header") from None
    position = _REQUEST_START.size
    client_id = None
    if size >= 0:
        if position + size > len(frame):
            raise MalformedRequestError(f"the client id claims {size} bytes, in a request of {len(frame)} bytes")
        client_id = str(frame[position : position + size], "utf-8", "replace")
        position += size
    elif size != _NULL_SIZE:
        raise MalformedRequestError(f"the client id has the negative length {size}")
    if is_flexible(api_key, api_version):
        position = _after_tags(frame, position)
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def _after_tags(frame: bytes | bytearray | memoryview, position: int) -> int:
    """No client sends tags in a header yet, so one zero byte is the usual case."""
    if position < len(frame) and frame[position] == 0:
        return position + 1
    cursor = Cursor(bytes(frame), position, elements_left=len(frame))
    try:
        skip_tags(cursor)
    except DAMAGE as error:
        raise MalformedRequestError(f"the tags of a request header: {error}") from None
    return cursor.position


def encode_response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """The bytes before a response's body, without the size prefix."""
    start = correlation_id.to_bytes(4, "big", signed=True)
    return start + b"\0" if response_header_version(api_key, version) else start


def encode_request_header(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The bytes before a request's body, without the size prefix."""
    name = b"" if client_id is None else client_id.encode()
    size = _NULL_SIZE if client_id is None else len(name)
    start = _REQUEST_START.pack(api_key, version, correlation_id, size) + name
    return start + b"\0" if is_flexible(api_key, version) else start


def decode_response_header(api_key: int, version: int, frame: bytes | bytearray) -> tuple[int, int]:
    """Return the correlation id and where the body begins."""
    if len(frame) < 4:
        raise MalformedResponseError(f"a response of {len(frame)} bytes ends within its header")
    correlation_id = int.from_bytes(frame[:4], "big", signed=True)
    if not response_header_version(api_key, version):
        return correlation_id, 4
    if frame[4:5] == b"\0":
        return correlation_id, 5
    cursor = Cursor(bytes(frame), 4)
    try:
        skip_tags(cursor)
    except DAMAGE as error:
        raise MalformedResponseError(f"the tags of a response header: {error}") from None
    return correlation_id, cursor.position
