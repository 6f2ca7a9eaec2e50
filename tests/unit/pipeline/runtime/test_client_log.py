"""Complaints of Kafka clients: those that last, each once in a while."""

from __future__ import annotations

from moldau.pipeline.runtime.client_log import BROKEN_S, SILENCE_S, ClientComplaints

WHERE = "[Consumer groupId=a] 127.0.0.1:9092/1: Connect to ipv4#127.0.0.1:9092"
REFUSED = f"{WHERE} failed: Connection refused (after 0ms in state CONNECT)"


def test_a_connection_that_comes_back_at_once_is_not_worth_a_word() -> None:
    complaints = ClientComplaints()

    assert not complaints.is_news(REFUSED, 100.0)
    assert not complaints.is_news(REFUSED, 100.0 + BROKEN_S / 2)


def test_a_connection_that_stays_broken_is_told_twice_a_minute() -> None:
    complaints = ClientComplaints()
    told = [second for second in range(61) if complaints.is_news(REFUSED, float(second))]

    assert told == [int(BROKEN_S), int(BROKEN_S + SILENCE_S)]


def test_the_time_that_an_attempt_took_makes_no_difference() -> None:
    complaints = ClientComplaints()
    complaints.is_news(REFUSED, 0.0)

    assert complaints.is_news(REFUSED.replace("after 0ms", "after 12ms"), 3.0)
    assert not complaints.is_news(REFUSED.replace("after 0ms", "after 7ms"), 4.0)


def test_a_connection_that_breaks_another_day_may_come_back_again() -> None:
    complaints = ClientComplaints()
    complaints.is_news(REFUSED, 0.0)
    complaints.is_news(REFUSED, 3.0)

    assert not complaints.is_news(REFUSED, 1000.0)


def test_other_complaints_are_told_at_once() -> None:
    assert ClientComplaints().is_news("[Producer] SASL authentication error: Authentication failed", 0.0)


def test_what_the_application_tells_itself_is_not_told_twice() -> None:
    text = (
        "[Consumer groupId=a] Fatal error: Broker: Static consumer fenced by other consumer with same group.instance.id"
    )
    assert not ClientComplaints().is_news(text, 0.0)
