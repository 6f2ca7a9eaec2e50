from __future__ import annotations

import pytest

from moldau.client.errors import ClientError, UnreachableError
from moldau.core.errors import ErrorCode
from moldau.http.errors import HttpError
from moldau.rest.errors import RestError, broker_error, record_error_code, render_error, titled


@pytest.mark.parametrize(
    ("error_code", "code", "status"),
    [
        (ErrorCode.TOPIC_ALREADY_EXISTS, 40002, 400),
        (ErrorCode.INVALID_CONFIG, 40002, 400),
        (ErrorCode.SECURITY_DISABLED, 40002, 400),
        (ErrorCode.SASL_AUTHENTICATION_FAILED, 40101, 401),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 40301, 403),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 40403, 404),
        (ErrorCode.LEADER_NOT_AVAILABLE, 40404, 404),
        (ErrorCode.GROUP_ID_NOT_FOUND, 40405, 404),
        (ErrorCode.MESSAGE_TOO_LARGE, 413, 413),
        (ErrorCode.BROKER_NOT_AVAILABLE, 50302, 503),
        (ErrorCode.UNKNOWN_SERVER_ERROR, 50002, 500),
    ],
)
def test_a_brokers_refusal_has_its_code(error_code: ErrorCode, code: int, status: int) -> None:
    error = broker_error(ClientError("refused", error_code))
    assert (error.error_code, error.status) == (code, status)


def test_a_record_that_may_succeed_later_is_told_apart() -> None:
    refused, away = ClientError("no"), UnreachableError("nobody answers")
    assert (record_error_code(refused), record_error_code(away)) == (50002, 50003)
    assert broker_error(away).error_code == 50302


def test_errors_become_documents() -> None:
    assert render_error(RestError(40001, "too small")).status == 422
    assert render_error(HttpError(415)).document == {
        "error_code": 415,
        "message": "HTTP 415 Unsupported Media Type",
    }
    assert str(titled(400, "data=1 is not a base64 string.")) == "Bad Request: data=1 is not a base64 string."
    unexpected = render_error(KeyError("secret"))
    assert unexpected.status == 500
    assert "secret" not in unexpected.document["message"]
