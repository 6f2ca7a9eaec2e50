"""What scripts read that speak ZooKeeper's four-letter words."""

from __future__ import annotations

import itertools
import string

import pytest

from moldau.server.zookeeper.four_letter_words import WORDS, PointStatus, answer

STATUS = PointStatus(
    version="9.9",
    client_port=2181,
    data_dir="/data/zookeeper",
    settings={"maxClientCnxns": "0", "clientPort": "0"},
    connections=2,
    received=7,
    sent=6,
    offset=26,
    brokers=("0 at localhost:9092",),
    clients=("127.0.0.1:5000",),
)


def said(word: str) -> str:
    text = answer(word.encode(), STATUS)
    assert text is not None
    return text


def test_are_you_ok() -> None:
    assert said("ruok") == "imok"


@pytest.mark.parametrize("word", ["srvr", "stat"])
def test_the_state_has_the_lines_that_scripts_look_for(word: str) -> None:
    lines = said(word).splitlines()
    assert lines[0] == "Zookeeper version: moldau 9.9"
    assert {"Mode: standalone", "Connections: 2", "Received: 7", "Sent: 6", "Zxid: 0x1a", "Node count: 1"} <= set(lines)
    assert (" /127.0.0.1:5000" in lines) == (word == "stat")


def test_monitoring_gets_a_name_and_a_value_in_each_line() -> None:
    values = dict(line.split("\t") for line in said("mntr").splitlines())
    assert values["zk_server_state"] == "standalone"
    assert values["zk_num_alive_connections"] == "2"


def test_the_configuration_names_the_port_that_is_in_use() -> None:
    assert set(said("conf").splitlines()) == {"clientPort=2181", "dataDir=/data/zookeeper", "maxClientCnxns=0"}


def test_the_dump_names_the_brokers_as_zookeeper_did() -> None:
    assert said("dump").splitlines() == ["Sessions with Ephemerals (1):", "/brokers/ids/0"]


def test_words_without_an_answer_say_so() -> None:
    assert said("wchs") == "wchs is not offered by moldau's controller.\n"


def test_every_word_is_answered_and_nothing_else_is() -> None:
    assert all(answer(word, STATUS) for word in WORDS)
    assert answer(b"\x00\x00\x00\x2c", STATUS) is None
    letters = (
        "".join(four).encode() for four in itertools.islice(itertools.product(string.ascii_lowercase, repeat=4), 5000)
    )
    assert all(answer(word, STATUS) is None for word in letters if word not in WORDS)


def test_a_word_can_never_be_the_length_of_a_request() -> None:
    assert min(int.from_bytes(word, "big") for word in WORDS) > 1024 * 1024
