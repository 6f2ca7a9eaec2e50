"""A data folder that was damaged while its broker was stopped in good order: everything that is gone is noticed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.stranger import Stranger, batch_of
from tests.integration.transaction_client import TransactionClient

from moldau.core.errors import ErrorCode, StartupError
from moldau.log.directories.manifest import MANIFEST
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.protocol.records import decode_records, split_batches
from moldau.testing import Broker

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": "400",
    "transaction.state.log.num.partitions": "1",
    "log.retention.ms": "-1",
    "log.cleaner.enable": "false",
}
ORDERS = [b"order %d" % number for number in range(20)]
COMMITTED = [b"committed %d" % number for number in range(6)]
OFFLINE = ErrorCode.KAFKA_STORAGE_ERROR
Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two topics, a group's offsets and transactions, by a broker that was stopped in good order."""
    data = tmp_path_factory.mktemp("written") / "data"
    with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
        client.create_topic("orders", segment_bytes=200)
        client.create_topic("healthy")
        client.create_topic("ledger", segment_bytes=300)
        for value in ORDERS:
            assert client.produce("orders", batch_of(value)).error_code == 0
        assert client.produce("healthy", batch_of(b"and well")).error_code == 0
        for number in range(10):
            commit(client, "readers", number)
            commit(client, f"other-{number}", number)
        with TransactionClient(broker.port, "ledger") as transactions:
            transactions.init()
            for sequence in range(2 * len(COMMITTED)):
                is_commit = sequence % 2 == 1
                text = COMMITTED[sequence // 2].decode() if is_commit else "aborted"
                transactions.add("ledger", 0)
                assert transactions.write("ledger", text, sequence=sequence) is ErrorCode.NONE
                assert transactions.end(is_commit=is_commit) is ErrorCode.NONE
    assert len(segments(data / "orders-0")) > 4
    assert len(segments(data / "__consumer_offsets-0")) > 4
    assert len(list((data / "ledger-0").glob("*.txnindex"))) > 2
    return data


@pytest.fixture
def data(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "data"))


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[str], list[str]]:
    """Log lines of errors that contain some words."""

    def found(words: str) -> list[str]:
        errors = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
        return [line for line in errors if words in line]

    return found


def commit(client: Stranger, group: str, offset: int) -> None:
    assert find_coordinator(client, group) == 0
    partition = Message(
        partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata="as text"
    )
    answer = client.ask(
        ApiKey.OFFSET_COMMIT,
        7,
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[Message(name="orders", partitions=[partition])],
    )
    assert answer.topics[0].partitions[0].error_code == 0


def find_coordinator(client: Stranger, key: str, key_type: int = 0) -> int:
    answer = client.ask(ApiKey.FIND_COORDINATOR, 4, key_type=key_type, coordinator_keys=[key])
    return int(answer.coordinators[0].error_code)


def committed(client: Stranger, group: str) -> tuple[ErrorCode, int]:
    """What OffsetFetch says, once the coordinator has loaded or given up."""
    while True:
        topics = [Message(name="orders", partition_indexes=[0])]
        answer = client.ask(ApiKey.OFFSET_FETCH, 7, group_id=group, topics=topics, require_stable=False)
        code = ErrorCode(answer.error_code)
        if code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return code, answer.topics[0].partitions[0].committed_offset if answer.topics else -1


def read_committed(client: Stranger, topic: str) -> list[bytes | None]:
    """As a consumer does: the broker names the aborted transactions, the reader leaves them out."""
    found: list[bytes | None] = []
    offset = 0
    while True:
        partition = Message(partition=0, fetch_offset=offset, partition_max_bytes=1_000_000)
        topics = [Message(topic=topic, partitions=[partition])]
        answer = client.ask(
            ApiKey.FETCH,
            11,
            Message(replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=1_000_000, isolation_level=1, topics=topics),
        )
        part = answer.responses[0].partitions[0]
        assert part.error_code == 0
        batches = list(split_batches(part.records or b""))
        if not batches:
            return found
        aborted = sorted(((one.first_offset, one.producer_id) for one in part.aborted_transactions or []), reverse=True)
        open_aborted: set[int] = set()
        for header, batch in batches:
            while aborted and aborted[-1][0] <= header.last_offset:
                open_aborted.add(aborted.pop()[1])
            if header.is_control:
                open_aborted.discard(header.producer_id)
            elif header.producer_id not in open_aborted:
                found += [record.value for record in decode_records(batch, header)]
            offset = header.last_offset + 1


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


# --- nothing happened -------------------------------------------------------------------------------


def test_an_untouched_folder_is_taken_up_without_a_word(data: Path, lines: Callable[[str], list[str]]) -> None:
    for _ in range(3):
        with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
            assert client.values("orders") == ORDERS
            assert read_committed(client, "ledger") == COMMITTED
            assert committed(client, "readers") == (ErrorCode.NONE, 9)
            commit(client, "more", 1)
    assert lines("") == []


# --- coordinators -----------------------------------------------------------------------------------


def in_value_of_the_last_batch(data: Path) -> None:
    files = [path for path in segments(data / "__consumer_offsets-0") if path.stat().st_size]
    flip(files[-1], files[-1].stat().st_size - 40)


def in_a_base_offset(data: Path) -> None:
    flip(segments(data / "__consumer_offsets-0")[1], 7)


@pytest.mark.parametrize("damage", [in_value_of_the_last_batch, in_a_base_offset])
def test_a_flipped_bit_in_consumer_offsets_takes_its_coordinator_offline(
    data: Path, damage: Damage, lines: Callable[[str], list[str]]
) -> None:
    damage(data)
    for _ in range(2):
        with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
            assert committed(client, "readers")[0] is ErrorCode.NOT_COORDINATOR
            assert find_coordinator(client, "readers") == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert client.values("orders") == ORDERS
    first, second = lines("__consumer_offsets-0 is offline")
    for line in (first, second):
        assert re.search(r"__consumer_offsets-0/\d{20}\.log at position \d+: ", line)
        assert "restore the file" in line or "restore the files" in line


def test_a_damaged_transaction_log_takes_its_coordinator_offline(data: Path, lines: Callable[[str], list[str]]) -> None:
    flip(segments(data / "__transaction_state-0")[0], 100)
    with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
        with TransactionClient(broker.port, "ledger") as transactions:
            while (code := transactions.init()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                pass
            assert code is ErrorCode.NOT_COORDINATOR
        assert find_coordinator(client, "ledger", 1) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(lines("__transaction_state-0 is offline")) == 1


@pytest.mark.parametrize("has_manifest", [True, False])
def test_a_cut_end_of_consumer_offsets_takes_its_coordinator_offline(
    data: Path, has_manifest: bool, lines: Callable[[str], list[str]]
) -> None:
    """Without a manifest, as after an upgrade, the coordinator finds the log shorter than its recovery point."""
    last = [path for path in segments(data / "__consumer_offsets-0") if path.stat().st_size][-1]
    cut(last, 0)
    if not has_manifest:
        (data / MANIFEST).unlink()
    with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
        assert committed(client, "readers")[0] is ErrorCode.NOT_COORDINATOR
    assert len(lines("__consumer_offsets-0 is offline")) == 1


@pytest.mark.parametrize(
    "damage", [lambda folder: segments(folder)[1].unlink(), shutil.rmtree], ids=["segment", "folder"]
)
def test_lost_consumer_offsets_take_their_coordinator_offline(
    data: Path, damage: Damage, lines: Callable[[str], list[str]]
) -> None:
    damage(data / "__consumer_offsets-0")
    with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
        assert committed(client, "readers")[0] is ErrorCode.NOT_COORDINATOR
        assert find_coordinator(client, "readers") == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (line,) = lines("__consumer_offsets-0 is offline")
    assert "remove the line '__consumer_offsets 0'" in line


# --- transaction indexes ----------------------------------------------------------------------------


def deleted(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def flipped(path: Path) -> None:
    flip(path, 17)


@pytest.mark.parametrize("damage", [deleted, emptied, flipped])
def test_a_lost_or_damaged_txnindex_never_shows_aborted_records(
    data: Path, damage: Damage, lines: Callable[[str], list[str]]
) -> None:
    for path in (data / "ledger-0").glob("*.txnindex"):
        damage(path)
    with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
        assert read_committed(client, "ledger") == COMMITTED
    assert lines("") == []
    with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
        assert read_committed(client, "ledger") == COMMITTED


# --- segments and folders ---------------------------------------------------------------------------


def without_segment(index: int) -> Damage:
    return lambda data: segments(data / "orders-0")[index].unlink()


def without_folder(data: Path) -> None:
    shutil.rmtree(data / "orders-0")


def with_a_shorter_segment(index: int) -> Damage:
    return lambda data: cut(segments(data / "orders-0")[index], 100)


LOSSES = {
    "first": without_segment(0),
    "middle": without_segment(3),
    "last": without_segment(-1),
    "folder": without_folder,
    "shorter in the middle": with_a_shorter_segment(2),
    "shorter at the end": with_a_shorter_segment(-1),
}


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("damage", LOSSES.values(), ids=LOSSES.keys())
def test_lost_records_take_the_partition_offline_until_they_are_back(
    written: Path, data: Path, damage: Damage, is_clean: bool, lines: Callable[[str], list[str]]
) -> None:
    damage(data)
    if not is_clean:
        (data / ".kafka_cleanshutdown").unlink()
    for _ in range(2):
        with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
            assert client.produce("orders", batch_of(b"more")).error_code == OFFLINE
            assert client.fetch("orders", 0, max_wait_ms=0).error_code == OFFLINE
            assert client.values("healthy") == [b"and well"]
    found = lines("orders-0")
    assert len(found) == 2, "one line for each start"
    for line in found:
        assert f"remove the line 'orders 0' from {data / MANIFEST}" in line
        assert "restore the files from a backup" in line
    shutil.rmtree(data / "orders-0", ignore_errors=True)
    shutil.copytree(written / "orders-0", data / "orders-0")
    with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
        assert client.values("orders") == ORDERS
        assert client.produce("orders", batch_of(b"more")).error_code == 0
    assert len(lines("orders-0")) == 2


@pytest.mark.parametrize("way_out", ["remove the line", "remove the file", "moldau.recovery.truncate"])
@pytest.mark.parametrize(
    "damage", [LOSSES["middle"], LOSSES["last"], LOSSES["folder"]], ids=["middle", "last", "folder"]
)
def test_an_operator_can_accept_a_loss(data: Path, damage: Damage, way_out: str) -> None:
    damage(data)
    with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
        assert client.produce("orders", batch_of(b"more")).error_code == OFFLINE
    settings = dict(SETTINGS)
    manifest = data / MANIFEST
    if way_out == "remove the line":
        kept = [line for line in manifest.read_text().splitlines() if not line.startswith("orders 0 ")]
        manifest.write_text("\n".join(kept) + "\n")
    elif way_out == "remove the file":
        manifest.unlink()
    else:
        settings["moldau.recovery.truncate"] = "true"
    for again in (settings, SETTINGS):
        with Broker(again, data=data) as broker, Stranger(broker.port) as client:
            assert client.produce("orders", batch_of(b"after")).error_code == 0
            assert client.values("healthy") == [b"and well"]


def test_a_deleted_topic_is_not_missed_and_a_lost_one_can_be_deleted(
    data: Path, lines: Callable[[str], list[str]]
) -> None:
    without_folder(data)
    with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
        for name in ("healthy", "orders"):
            topics = [Message(name=name, topic_id=None)]
            answer = client.ask(ApiKey.DELETE_TOPICS, 5, topic_names=[name], topics=topics, timeout_ms=10_000)
            assert answer.responses[0].error_code == 0
    assert len(lines("orders-0")) == 1
    with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
        client.create_topic("orders")
        assert client.produce("orders", batch_of(b"anew")).error_code == 0
        assert client.values("orders") == [b"anew"]
    assert len(lines("")) == 1


def test_a_damaged_manifest_is_told_of_and_accuses_nobody(data: Path, lines: Callable[[str], list[str]]) -> None:
    cut(data / MANIFEST, 200)
    with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
        assert client.values("orders") == ORDERS
    (line,) = lines("")
    assert f"{data / MANIFEST} is damaged and ignored" in line
    LOSSES["middle"](data)
    with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
        assert client.produce("orders", batch_of(b"more")).error_code == OFFLINE, "it was written anew"


# --- metadata ---------------------------------------------------------------------------------------


METADATA = "__cluster_metadata-0"


def without_metadata(data: Path) -> None:
    shutil.rmtree(data / METADATA)


def without_metadata_segments(data: Path) -> None:
    for path in segments(data / METADATA):
        path.unlink()


def with_emptied_metadata(data: Path) -> None:
    cut(segments(data / METADATA)[0], 0)


def with_half_the_metadata(data: Path) -> None:
    path = segments(data / METADATA)[0]
    cut(path, path.stat().st_size // 2)


@pytest.fixture
def listing(data: Path) -> Iterator[None]:
    """Nothing but the metadata folder is moved, made or removed."""

    def folders() -> set[str]:
        return {path.name for path in data.iterdir() if path.is_dir()} - {METADATA}

    before = folders()
    yield
    assert folders() == before


METADATA_LOSSES = [without_metadata, without_metadata_segments, with_emptied_metadata, with_half_the_metadata]


@pytest.mark.usefixtures("listing")
@pytest.mark.parametrize("damage", METADATA_LOSSES)
def test_lost_metadata_stops_the_start(data: Path, damage: Damage) -> None:
    damage(data)
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file() and path.name != ".lock"}
    for _ in range(2):
        with pytest.raises(StartupError, match=r"the metadata log .* Restore this folder from a backup"):
            Broker(SETTINGS, data=data).start()
    assert before.keys() <= {path for path in data.rglob("*") if path.is_file()}
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.usefixtures("listing")
def test_an_empty_metadata_log_beside_partitions_stops_the_start_without_a_manifest_too(data: Path) -> None:
    without_metadata(data)
    (data / MANIFEST).unlink()
    with pytest.raises(StartupError, match="is missing or empty, but the log directories hold 5 partitions"):
        Broker(SETTINGS, data=data).start()


def test_the_loss_of_metadata_can_be_accepted(data: Path) -> None:
    with_half_the_metadata(data)
    with pytest.raises(StartupError, match=f"remove the file {MANIFEST} from every log directory"):
        Broker(SETTINGS, data=data).start()
    (data / MANIFEST).unlink()
    with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
        client.create_topic("anew")
    with Broker(SETTINGS, data=data) as broker, Stranger(broker.port) as client:
        assert client.produce("anew", batch_of(b"x")).error_code == 0
