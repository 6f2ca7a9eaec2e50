"""Clients that are slow, greedy or rude cost a little memory and nobody else's time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.integration.stranger import Stranger, Witness, batch_of, frame, produce_body, resident_bytes

from moldau.protocol.api import ApiKey, encode_request_header
from moldau.testing import Broker

MIB = 1 << 20
PATIENCE_S = 2.0
"""Far above what a served request takes, far below what a stalled loop would cost."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def hello() -> bytes:
    return frame(encode_request_header(ApiKey.API_VERSIONS, 0, 1, None))


def test_half_sent_frames_keep_nobody_waiting(broker: Broker) -> None:
    with ExitStack() as stack:
        body = produce_body("whatever", batch_of(b"x" * 200_000))
        request = frame(encode_request_header(ApiKey.PRODUCE, 8, 1, None) + body)
        for number in range(200):
            stranger = stack.enter_context(Stranger(broker.port))
            stranger.send(request[: 3 + number * 900])
        with Witness(broker.port, "beside-half-frames") as witness:
            witness.wait_until_served()
        assert witness.longest_wait_s < PATIENCE_S


def test_large_promises_cost_no_memory(broker: Broker) -> None:
    """A hundred frames of 100 MB are announced, and a few bytes of each arrive."""
    before = resident_bytes()
    with ExitStack() as stack:
        for _ in range(100):
            stranger = stack.enter_context(Stranger(broker.port))
            stranger.send((100_000_000).to_bytes(4, "big") + b"\0\0\0\x08" + b"\0" * 100)
        with Stranger(broker.port) as witness:
            assert witness.is_served()
        assert resident_bytes() - before < 50 * MIB


def test_fetcher_that_never_reads_costs_little_and_stalls_nobody(broker: Broker) -> None:
    with Stranger(broker.port) as filler:
        filler.create_topic("unread")
        batch = batch_of(b"x" * 900_000)
        for _ in range(30):
            assert filler.produce("unread", batch).error_code == 0
    before = resident_bytes()
    with ExitStack() as stack:
        for _ in range(20):
            stranger = stack.enter_context(Stranger(broker.port, receive_buffer_bytes=4096))
            for _ in range(30):
                stranger.send_fetch("unread", 0)
        with Witness(broker.port, "beside-unread") as witness:
            witness.wait_until_served()
        assert witness.longest_wait_s < PATIENCE_S
        assert resident_bytes() - before < 60 * MIB


def test_requests_without_end_from_one_who_never_reads_are_not_taken_for_ever(broker: Broker) -> None:
    before = resident_bytes()
    with Stranger(broker.port, timeout_s=1, receive_buffer_bytes=4096) as stranger:
        with pytest.raises(TimeoutError):
            _send_for_ever(stranger, hello() * 10_000)
        with Witness(broker.port, "beside-deaf") as witness:
            witness.wait_until_served()
        assert witness.longest_wait_s < PATIENCE_S
        assert resident_bytes() - before < 60 * MIB


def _send_for_ever(stranger: Stranger, data: bytes) -> None:
    for _ in range(400 * MIB // len(data)):
        stranger.send(data)


def test_replies_keep_the_order_of_requests_when_one_has_to_wait(broker: Broker) -> None:
    with Stranger(broker.port) as stranger, Stranger(broker.port) as other:
        other.create_topic("in-order")
        first = stranger.send_fetch("in-order", 0, max_wait_ms=5000)
        second = stranger.send_request(ApiKey.API_VERSIONS, 0, b"")
        third = stranger.send_produce("in-order", batch_of(b"mine"))
        assert other.produce("in-order", batch_of(b"wakes the fetch")).error_code == 0
        assert stranger.answer(ApiKey.FETCH, 11, first).responses[0].partitions[0].high_watermark == 1
        assert stranger.answer(ApiKey.API_VERSIONS, 0, second).error_code == 0
        assert stranger.answer(ApiKey.PRODUCE, 8, third).responses[0].partition_responses[0].base_offset == 1


def test_client_that_leaves_while_its_fetch_is_parked_is_forgotten(broker: Broker) -> None:
    with Stranger(broker.port) as other:
        other.create_topic("left-alone")
        for _ in range(50):
            with Stranger(broker.port) as leaving:
                leaving.send_fetch("left-alone", 0, max_wait_ms=60_000)
        assert other.produce("left-alone", batch_of(b"for nobody")).error_code == 0
        assert other.values("left-alone") == [b"for nobody"]


def test_pipelined_produces_are_all_kept_in_order(broker: Broker) -> None:
    with Stranger(broker.port) as stranger:
        stranger.create_topic("pipelined")
        sent = [stranger.send_produce("pipelined", batch_of(b"%d" % number)) for number in range(500)]
        for number, correlation_id in enumerate(sent):
            answer = stranger.answer(ApiKey.PRODUCE, 8, correlation_id).responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (0, number)


def test_connections_over_the_limit_of_an_address_are_closed_and_the_others_stay() -> None:
    with Broker({"max.connections.per.ip": "5"}) as broker, ExitStack() as stack:
        admitted = [stack.enter_context(Stranger(broker.port)) for _ in range(5)]
        assert all(stranger.is_served() for stranger in admitted)
        for _ in range(3):
            with Stranger(broker.port) as refused:
                assert refused.is_closed()
        assert all(stranger.is_served() for stranger in admitted)
        admitted.pop().socket.close()
        assert _is_admitted_soon(broker)


def _is_admitted_soon(broker: Broker) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with Stranger(broker.port) as stranger:
            try:
                return stranger.is_served()
            except ConnectionError:
                continue
    return False


def test_connection_over_the_limit_of_all_waits_for_its_turn() -> None:
    with Broker({"max.connections": "3"}) as broker, ExitStack() as stack:
        admitted = [stack.enter_context(Stranger(broker.port)) for _ in range(3)]
        assert all(stranger.is_served() for stranger in admitted)
        with Stranger(broker.port) as waiting:
            answered = threading.Event()

            def ask() -> None:
                if waiting.is_served():
                    answered.set()

            asking = threading.Thread(target=ask)
            asking.start()
            assert not answered.wait(0.3)
            admitted.pop().socket.close()
            assert answered.wait(10)
            asking.join()


def test_silent_connection_is_closed_and_a_waiting_one_is_not() -> None:
    with Broker({"connections.max.idle.ms": "1000"}) as broker:
        with Stranger(broker.port) as other:
            other.create_topic("quiet")
        with Stranger(broker.port) as silent, Stranger(broker.port) as waiting:
            sent = waiting.send_fetch("quiet", 0, max_wait_ms=4000)
            assert silent.is_closed()
            assert waiting.answer(ApiKey.FETCH, 11, sent).error_code == 0


def test_storm_of_connections_harms_nobody(broker: Broker) -> None:
    with Witness(broker.port, "beside-storm") as witness:
        for _ in range(1000):
            with Stranger(broker.port) as stranger:
                stranger.send(hello())
                stranger.receive_frame()
    assert witness.longest_wait_s < PATIENCE_S
