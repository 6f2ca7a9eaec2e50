"""librdkafka's log lines in, few lines out; the clock is a number."""

from __future__ import annotations

import gc
import random

from moldau.client.connection_log import (
    REMINDER_S,
    RESTART_S,
    BrokerAnswered,
    BrokerFailed,
    Complaint,
    ConnectionLog,
    ConnectionStates,
    Event,
    Line,
    parse_log_line,
)

REFUSED = BrokerFailed("localhost:9092", "127.0.0.1:9092", "Connection refused")
SILENT = BrokerFailed("localhost:9092", "", "it accepts connections, but does not answer", is_timeout=True)
UP = BrokerAnswered("localhost:9092")


def texts(states: ConnectionStates, events: list[tuple[float, Event]], client: str = "Producer") -> list[str]:
    return [line.text for now_s, event in events for line in states.lines(client, event, now_s)]


class TestParsing:
    def test_a_refused_connection(self) -> None:
        text = (
            "[thrd:localhost:9092/bootstrap]: localhost:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: "
            "Connection refused (after 0ms in state CONNECT, 30 identical error(s) suppressed)"
        )
        assert parse_log_line(40, "FAIL", text) == REFUSED

    def test_a_coordinator_is_the_broker_behind_it(self) -> None:
        text = (
            "[thrd:GroupCoordinator]: GroupCoordinator: localhost:9092: Connect to ipv4#127.0.0.1:9092 failed: "
            "Connection refused (after 0ms in state CONNECT)"
        )
        assert parse_log_line(40, "FAIL", text) == REFUSED

    def test_a_broker_that_accepts_and_never_answers(self) -> None:
        versions = (
            "[thrd:localhost:9092/1]: localhost:9092/1: ApiVersionRequest failed: Local: Timed out: probably due to "
            "broker version < 0.10 (see api.version.request configuration) (after 10062ms in state APIVERSION_QUERY)"
        )
        in_flight = "localhost:9092/1: Timed out 5 in-flight, 0 retry-queued, 0 out-queue, 0 partially-sent requests"
        assert parse_log_line(30, "FAIL", versions) == SILENT
        assert parse_log_line(30, "REQTMOUT", in_flight) == SILENT

    def test_a_name_that_does_not_resolve(self) -> None:
        reason = "Failed to resolve 'nowhere:9092': Name or service not known"
        text = f"nowhere:9092/bootstrap: {reason} (after 3ms in state CONNECT)"
        assert parse_log_line(40, "FAIL", text) == BrokerFailed("nowhere:9092", "", reason)

    def test_refused_credentials_are_no_outage(self) -> None:
        text = "sasl_ssl://b:9093/1: SASL authentication error: wrong password (after 5ms in state AUTH_REQ)"
        assert parse_log_line(40, "FAIL", text) == Complaint("WARN", text)

    def test_an_answer_is_found_among_the_debug_lines(self) -> None:
        assert parse_log_line(10, "APIVERSION", "[thrd:x]: localhost:9092/1: Broker API support:") == UP
        assert parse_log_line(10, "APIVERSION", "[thrd:x]: localhost:9092/1:   ApiKey Fetch (1) Versions 4..18") is None
        assert parse_log_line(10, "FEATURE", "localhost:9092/1: Updated enabled protocol features") is None

    def test_everything_else_is_a_complaint_or_nothing(self) -> None:
        assert parse_log_line(50, "X", "[thrd:main]: out of luck") == Complaint("ERROR", "out of luck")
        assert parse_log_line(20, "X", "for your information") is None
        assert parse_log_line(40, "FAIL", "no broker here") == Complaint("WARN", "no broker here")


class TestOutages:
    def test_one_line_when_it_begins_one_when_it_ends_and_a_reminder_every_half_minute(self) -> None:
        failures: list[tuple[float, Event]] = [(number / 20, REFUSED) for number in range(20 * 70)]
        assert texts(ConnectionStates(), [*failures, (70.0, UP), (70.5, UP)]) == [
            "[Producer] Broker localhost:9092 is not available: Connection refused. Trying until it answers.",
            "[Producer] Broker localhost:9092 is still not available after 30 s: Connection refused",
            "[Producer] Broker localhost:9092 is still not available after 60 s: Connection refused",
            "[Producer] Broker localhost:9092 answers again after 70 s",
        ]

    def test_several_clients_tell_it_once(self) -> None:
        states = ConnectionStates()
        lines = [line for number in range(50) for line in states.lines(f"Consumer {number}", REFUSED, number / 50)]
        assert len(lines) == 1
        assert len(states.lines("Consumer 7", UP, 3.0)) == 1
        assert states.lines("Consumer 8", UP, 3.0) == []

    def test_old_news_of_a_client_that_was_not_polled_end_nothing(self) -> None:
        states = ConnectionStates()
        assert len(states.lines("Consumer", REFUSED, 0.0, "consumer")) == 1
        assert states.lines("Producer", UP, 5.0, "idle producer") == []
        assert states.is_cut_off
        assert len(states.lines("Consumer", UP, 6.0, "consumer")) == 1
        assert not states.is_cut_off

    def test_a_restart_that_is_over_soon_is_not_mentioned(self) -> None:
        states = ConnectionStates()
        assert texts(states, [(0.0, UP), (5.0, REFUSED), (5.0 + RESTART_S / 2, REFUSED), (6.5, UP)]) == []
        assert len(texts(states, [(9.0, REFUSED), (9.0 + RESTART_S, REFUSED), (12.0, UP)])) == 2

    def test_a_broker_that_was_waited_for_is_mentioned_at_once(self) -> None:
        assert len(texts(ConnectionStates(), [(0.0, UP), (30.0, SILENT)])) == 1

    def test_names_of_this_machine_are_one_broker(self) -> None:
        states = ConnectionStates()
        advertised = BrokerFailed("127.0.0.1:9092", "", "Disconnected")
        assert len(texts(states, [(0.0, advertised), (0.1, REFUSED), (0.2, SILENT)])) == 1
        assert texts(states, [(1.0, BrokerAnswered("[::1]:9092"))]) == [
            "[Producer] Broker [::1]:9092 answers again after 1 s"
        ]

    def test_a_bootstrap_name_and_an_advertised_name_meet_in_their_address(self) -> None:
        states = ConnectionStates()
        both: list[tuple[float, Event]] = [
            (0.0, BrokerFailed("bootstrap:9092", "10.0.0.7:9092", "Connection refused")),
            (0.1, BrokerFailed("node-7:9092", "10.0.0.7:9092", "Connection refused")),
        ]
        assert len(texts(states, both)) == 1
        assert len(texts(states, [(2.0, BrokerAnswered("node-7:9092"))])) == 1

    def test_two_brokers_are_two_outages(self) -> None:
        states = ConnectionStates()
        other = BrokerFailed("localhost:9093", "127.0.0.1:9093", "Connection refused")
        assert len(texts(states, [(0.0, REFUSED), (0.1, other), (0.2, REFUSED), (0.3, other)])) == 2
        assert texts(states, [(9.0, UP)]) == ["[Producer] Broker localhost:9092 answers again after 9 s"]

    def test_a_silent_coordinator_is_the_silent_broker(self) -> None:
        coordinator = BrokerFailed("GroupCoordinator", "", "it accepts connections, but does not answer", True)
        assert len(texts(ConnectionStates(), [(0.0, SILENT), (0.1, coordinator)])) == 1
        assert len(texts(ConnectionStates(), [(0.0, coordinator), (0.1, SILENT), (5.0, UP)])) == 2

    def test_clients_are_cut_off_when_all_brokers_they_know_are_away(self) -> None:
        states = ConnectionStates()
        assert not states.is_cut_off
        texts(states, [(0.0, UP), (0.0, BrokerAnswered("GroupCoordinator")), (1.0, BrokerAnswered("localhost:9093"))])
        texts(states, [(2.0, REFUSED)])
        assert not states.is_cut_off
        texts(states, [(2.0, BrokerFailed("127.0.0.1:9093", "", "Disconnected"))])
        assert states.is_cut_off
        texts(states, [(3.0, UP)])
        assert not states.is_cut_off

    def test_whatever_happens_lines_are_few_and_ends_follow_beginnings(self) -> None:
        for seed in range(300):
            chance = random.Random(seed)
            states, now_s, is_away = ConnectionStates(), 0.0, False
            told = 0
            for _ in range(400):
                now_s += chance.choice((0.0, 0.05, 1.0))
                lines = states.lines("C", chance.choice((REFUSED, REFUSED, REFUSED, SILENT, UP)), now_s)
                assert len(lines) <= 1
                for line in lines:
                    told += 1
                    is_end = "answers again" in line.text
                    assert is_end == (is_away and is_end)
                    is_away = not is_end
            assert told <= 400


class TestComplaints:
    def test_the_same_one_is_told_again_after_half_a_minute(self) -> None:
        states = ConnectionStates()
        first, again = Complaint("WARN", "poll took 31 s"), Complaint("WARN", "poll took 32 s")
        assert states.lines("C", first, 0.0) == [Line("WARN", "[C] poll took 31 s")]
        assert states.lines("C", again, REMINDER_S - 1) == []
        assert states.lines("C", again, REMINDER_S) == [Line("WARN", "[C] poll took 32 s")]


class TestShell:
    def test_clients_that_report_to_one_place_share_what_is_known(self) -> None:
        lines: list[tuple[str, str]] = []

        def report(level: str, text: str) -> None:
            lines.append((level, text))

        refused = (
            "b:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)"
        )
        for title in ("Producer", "Consumer"):
            ConnectionLog.to(report).of_client(title)
        logs = [ConnectionLog.to(report).of_client(title) for title in ("Producer", "Consumer")]
        for log in logs:
            log.log(40, "%s [%s] %s", "FAIL", "rdkafka#1", refused)
        logs[1].log(10, "%s [%s] %s", "APIVERSION", "rdkafka#1", "[thrd:x]: b:9092/1: Broker API support:")
        assert [level for level, _ in lines] == ["WARN", "WARN"]

    def test_a_place_nobody_reports_to_any_more_is_forgotten(self) -> None:
        def report(level: str, text: str) -> None:
            pass

        ConnectionLog.to(report)
        gc.collect()
        assert report not in ConnectionLog._shared
