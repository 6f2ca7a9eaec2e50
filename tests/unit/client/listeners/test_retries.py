"""Where failed records go, and what their headers tell."""

from __future__ import annotations

import pytest

from moldau.client import Failure, InvalidConfigError, Record, RetryPolicy
from moldau.client.errors import SerializationError
from moldau.client.listeners.retries import Origin, due_ms, failure_headers, failure_of, next_stop

NOW_MS = 1_000_000
RECORD = Record("payments", 2, 17, 900_000, b"k", b"v", (("trace", b"1"), ("trace", None)))
POLICY = RetryPolicy(attempts=3, backoff_ms=1000)


def failed(record: Record[bytes, bytes], error: Exception) -> Failure:
    return failure_of(record, error, group="billing", listener="bill")


def moved(record: Record[bytes, bytes], error: Exception) -> Record[bytes, bytes]:
    """The record as it lies in the topic it goes to."""
    failure = failed(record, error)
    stop = next_stop(POLICY, failure, error, NOW_MS)
    assert stop.topic is not None
    return Record(
        stop.topic, 0, 5, NOW_MS, record.key, record.value, failure_headers(record.headers, failure, stop.due_ms)
    )


def test_pauses_grow_up_to_the_longest() -> None:
    assert RetryPolicy(attempts=6, backoff_ms=100, multiplier=3, max_backoff_ms=1000).delays_ms() == [
        100,
        300,
        900,
        1000,
        1000,
    ]
    assert RetryPolicy(attempts=1).delays_ms() == []


def test_a_record_goes_through_every_retry_topic_to_the_dead_letters() -> None:
    first = moved(RECORD, ValueError("a"))
    second = moved(first, ValueError("b"))
    third = moved(second, KeyError("c"))
    assert [first.topic, second.topic, third.topic] == ["payments-retry-0", "payments-retry-1", "payments-dlt"]
    assert [due_ms(record) for record in (first, second, third)] == [NOW_MS + 1000, NOW_MS + 2000, 0]


@pytest.mark.parametrize("topic", ["payments-dlt", "payments.DLT", "payments-dlq", "payments_DLQ"])
def test_a_dead_letter_is_retried_and_then_stays_where_it_is(topic: str) -> None:
    letter = Record(topic, 2, 17, 900_000, b"k", b"v", ())
    first = moved(letter, ValueError("a"))
    second = moved(first, ValueError("b"))
    assert [first.topic, second.topic] == [f"{topic}-retry-0", f"{topic}-retry-1"]
    assert next_stop(POLICY, failed(second, ValueError("c")), ValueError("c"), NOW_MS) == (None, None)
    assert POLICY.dead_letter_topic(topic) is None


def test_a_topic_whose_name_only_contains_the_word_has_dead_letters() -> None:
    assert POLICY.dead_letter_topic("dlt-orders") == "dlt-orders-dlt"
    assert POLICY.dead_letter_topic("adlt") == "adlt-dlt"


def test_headers_tell_what_failed_where_and_why() -> None:
    letter = moved(moved(moved(RECORD, ValueError("a")), ValueError("b")), KeyError("c"))
    failure = Failure.of(letter)
    assert failure is not None
    assert failure.origin == Origin("payments", 2, 17, 900_000)
    assert (failure.group, failure.listener, failure.attempts, failure.stage) == ("billing", "bill", 3, "listener")
    assert (failure.error_class, failure.error_message) == ("KeyError", "'c'")
    assert "KeyError" in failure.trace


def test_headers_of_the_application_stay_and_ours_do_not_pile_up() -> None:
    once, twice = moved(RECORD, ValueError("a")), moved(moved(RECORD, ValueError("a")), ValueError("b"))
    assert once.headers[:2] == twice.headers[:2] == RECORD.headers
    assert len(once.headers) == len(twice.headers)


def test_errors_that_waiting_does_not_mend_are_dead_at_once() -> None:
    policy = RetryPolicy(not_retried=(PermissionError,))
    unreadable = SerializationError.of_reading("payments", "value", ValueError("no JSON"), 2, 17)
    for error in (PermissionError("no"), unreadable):
        assert next_stop(policy, failed(RECORD, error), error, NOW_MS).topic == "payments-dlt"


def test_an_unreadable_value_is_told_as_such() -> None:
    cause = ValueError("no JSON")
    error = SerializationError.of_reading("payments", "value", cause, 2, 17)
    error.__cause__ = cause
    failure = failed(RECORD, error)
    assert (failure.stage, failure.error_class) == ("value", "ValueError")
    assert failure.error_message == "Record 17 of payments-2: the value cannot be deserialized: no JSON"


def test_text_that_is_no_unicode_still_becomes_a_header() -> None:
    failure = failed(RECORD, ValueError("half a pair: \ud800"))
    assert ("moldau.error.message", b"half a pair: ?") in failure_headers((), failure, None)


@pytest.mark.parametrize("headers", [(), (("moldau.attempts", b"1"),), (("moldau.origin.topic", None),)])
def test_a_record_without_our_headers_has_not_failed(headers: tuple[tuple[str, bytes | None], ...]) -> None:
    record = Record("t", 0, 3, 5, b"", b"", headers)
    assert Failure.of(record) is None
    assert Origin.of(record) == Origin("t", 0, 3, 5)


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"backoff_ms": -1}, {"multiplier": 0.5}, {"max_backoff_ms": -1}], ids=str
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidConfigError):
        RetryPolicy(**wrong)  # type: ignore[arg-type]
