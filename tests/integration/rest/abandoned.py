"""A thousand consumer instances are created and abandoned, a hundred of them after reading: all go, and their memory.

Run by `scripts/rest-instances`, with the proxy in a process of its own. Start at `run`.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor

from tests.integration.rest.talk import V2, Talk
from tests.integration.rest.test_lifetime import RestProcess, gauge
from tests.integration.server_process import wait_until

from moldau.testing import Broker

__all__ = ["run"]

MEMORY = "process_resident_memory_bytes"
GONE_S = 300.0


def run(*, instances: int, readers: int, timeout_ms: int) -> tuple[float, float, float]:
    """Resident bytes before, with all instances, and after they are gone."""
    with Broker({"group.initial.rebalance.delay.ms": "0"}) as broker:
        settings = [
            f"bootstrap.servers={broker.bootstrap_servers}",
            "listeners=http://127.0.0.1:0",
            f"consumer.instance.timeout.ms={timeout_ms}",
            "consumer.request.timeout.ms=200",
        ]
        with (
            RestProcess(*(word for one in settings for word in ("--override", one))) as process,
            Talk(process.url) as talk,
        ):
            topic = talk.new_topic()
            talk.produce(topic, *("x" * 1000 for _ in range(200)))
            # One instance lives and goes before: what a process loads once is not the instances'.
            _read(process.url, topic)
            wait_until(lambda: gauge(talk, "moldau_rest_consumer_instances") == 0, timeout_s=GONE_S)
            before = gauge(talk, MEMORY)
            with ThreadPoolExecutor(8) as pool:
                for _ in pool.map(lambda _: _create(process.url), range(instances - readers)):
                    pass
                for _ in pool.map(lambda _: _read(process.url, topic), range(readers)):
                    pass
            during = gauge(talk, MEMORY)
            wait_until(
                lambda: (
                    gauge(talk, "moldau_rest_consumer_instances") + gauge(talk, "moldau_rest_consumer_closing") == 0
                ),
                timeout_s=GONE_S,
                what="the end of all instances",
            )
            return before, during, gauge(talk, MEMORY)


def _create(url: str) -> str:
    talk = Talk(url)
    try:
        created = talk("POST", f"/consumers/{talk.new_name('group')}", {"format": "json"}, content=V2)
        return str(created.document["base_uri"])
    finally:
        talk.http.close()


def _read(url: str, topic: str) -> None:
    talk = Talk(url)
    try:
        settings = {"format": "json", "auto.offset.reset": "earliest"}
        created = talk("POST", f"/consumers/{talk.new_name('group')}", settings, content=V2).document
        talk("POST", f"{created['base_uri']}/subscription", {"topics": [topic]}, content=V2)
        deadline = time.monotonic() + 60
        while not talk("GET", f"{created['base_uri']}/records").document:
            assert time.monotonic() < deadline
    finally:
        talk.http.close()


def main() -> None:
    """Create instances, abandon them, and compare the proxy's memory before and after."""
    parser = argparse.ArgumentParser(prog="scripts/rest-instances", description=main.__doc__)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--readers", type=int, default=100, help="how many of them read before they are abandoned")
    parser.add_argument("--timeout-ms", type=int, default=20_000, help="when an unused instance is removed")
    options = parser.parse_args()
    before, during, after = run(instances=options.instances, readers=options.readers, timeout_ms=options.timeout_ms)
    mib = 1024 * 1024
    print(
        f"{options.instances} instances, {options.readers} of which read: {before / mib:.1f} MiB before, "
        f"{during / mib:.1f} MiB with them, {after / mib:.1f} MiB after ({100 * (after / before - 1):+.1f} %)"
    )
    if abs(after / before - 1) > 0.1:
        raise SystemExit("the memory did not come back within 10 %")


if __name__ == "__main__":
    main()
