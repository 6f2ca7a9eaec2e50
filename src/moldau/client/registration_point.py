"""Finds the brokers of a cluster from an address that was given as ZooKeeper's.

At that address is a registration point (`zookeeper-server-start`), which knows the brokers, or a broker itself.
Start at `brokers_behind`.
"""

from __future__ import annotations

import time

from moldau.client.connection import normalize_servers
from moldau.client.errors import ClientError
from moldau.client.wire import WireClient
from moldau.core.errors import MoldauError
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = ["brokers_behind"]

CONNECT_TIMEOUT_S = 5.0
PAUSE_S = 0.2
BROKERS = 1


def brokers_behind(written: str, *, patience_s: float = 5.0) -> str:
    """Bootstrap servers for `host:port[,host:port][/chroot]`; raises `ClientError` with advice.

    Waits up to `patience_s` for a broker to register, which takes seconds after it or the registration point started.
    """
    servers = [_with_port(one) for one in written.partition("/")[0].split(",") if one.strip()]
    deadline = time.monotonic() + patience_s
    while True:
        found, failures = _ask_each(normalize_servers(",".join(servers)).split(","))
        if found:
            return ",".join(found)
        if not failures:
            raise ClientError(
                f"no broker is registered at {written}. Start one with `kafka-server-start config/server.properties`, "
                "whose zookeeper.connect is that address"
            )
        if time.monotonic() >= deadline or not any(is_waiting for is_waiting, _ in failures):
            raise ClientError(failures[0][1])
        time.sleep(PAUSE_S)


def _ask_each(servers: list[str]) -> tuple[list[str], list[tuple[bool, str]]]:
    """The brokers known to the first server that has any; else each server's failure, and whether waiting may help."""
    failures = []
    for server in servers:
        host, _, port = server.rpartition(":")
        try:
            with WireClient(host.strip("[]"), int(port), CONNECT_TIMEOUT_S) as client:
                if ApiKey.METADATA in client.api_versions():
                    return [server], []
                alive, known = _registered_brokers(client)
        except MoldauError as error:
            failures.append((False, _advice(server, error)))
            continue
        if alive:
            return alive, []
        if known:
            failures.append(
                (True, f"the broker that is registered at {server} ({known[0]}) does not report; is it running?")
            )
    return [], failures


def _registered_brokers(client: WireClient) -> tuple[list[str], list[str]]:
    """Addresses of the brokers that are alive, and of all that are known."""
    question = Message(include_cluster_authorized_operations=False, endpoint_type=BROKERS, include_fenced_brokers=True)
    brokers = client.send(ApiKey.DESCRIBE_CLUSTER, question).brokers
    known = {f"[{one.host}]:{one.port}" if ":" in one.host else f"{one.host}:{one.port}": one for one in brokers}
    return [address for address, one in known.items() if not one.is_fenced], list(known)


def _advice(server: str, error: MoldauError) -> str:
    if "cannot connect" in str(error):
        return (
            f"nothing answers at {server}. Start `zookeeper-server-start config/zookeeper.properties` and then "
            "`kafka-server-start config/server.properties`, or reach a broker directly: "
            "--bootstrap-server localhost:9092"
        )
    return (
        f"what answers at {server} does not speak Kafka's protocol ({error}). If it is a ZooKeeper, reach the brokers "
        "directly: --bootstrap-server localhost:9092"
    )


def _with_port(server: str) -> str:
    server = server.strip()
    return server if ":" in server else f"{server}:2181"
