"""kafka-replica-verification: how far the replicas of each partition are apart. Start at `main`."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from datetime import datetime

from moldau.cli.cluster_options import BROKERS, COMMAND_CONFIG, open_admin
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.tool import run, say
from moldau.client.admin import Admin
from moldau.client.wire_admin import describe_log_dirs
from moldau.core.ids import TopicPartition

__all__ = ["main"]

_PARSER = Parser(
    "Say again and again how far the replicas of each partition are apart; Ctrl-C ends it.",
    [
        BROKERS,
        COMMAND_CONFIG,
        Option(
            "topics-include",
            "Topics that fit this regular expression.",
            "regex",
            default=".*",
            aliases=("topic-white-list",),
        ),
        Option("report-interval-ms", "How often to report.", "ms", int, default=30_000),
        Option("max-reports", "End after so many reports; 0 for never.", "number", int, default=0),
        *(
            Option(name, "Accepted for compatibility.", "value", is_hidden=True)
            for name in ("time", "max-wait-ms", "fetch-size")
        ),
    ],
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(_PARSER, _verify, argv)


def _verify(parsed: Parsed) -> int:
    try:
        wanted = re.compile(parsed.value("topics-include"))
    except re.error as error:
        raise UsageError(f"{parsed.value('topics-include')} is an invalid regex: {error}") from None
    admin, interval_s = open_admin(parsed), parsed.value("report-interval-ms") / 1000
    say(f"{_now()}: verification process is started.")
    reports = 0
    while True:
        if reports:
            time.sleep(interval_s)
        say(_report(admin, wanted))
        reports += 1
        if reports == parsed.value("max-reports"):
            return 0


def _report(admin: Admin, wanted: re.Pattern[str]) -> str:
    lags = _lags(admin, wanted)
    if not lags:
        return f"{_now()}: no partition has a replica that answers"
    worst = max(lags, key=lambda one: lags[one])
    return f"{_now()}: max lag is {lags[worst]} for partition {worst} among {len(lags)} partitions"


def _lags(admin: Admin, wanted: re.Pattern[str]) -> dict[TopicPartition, int]:
    """How far the slowest replica of each partition is behind its leader's high watermark."""
    lags: dict[TopicPartition, int] = {}
    for node in admin.describe_cluster().nodes:
        with admin.wire(node.id) as client:
            for folder in describe_log_dirs(client):
                for replica in folder.replicas:
                    if wanted.fullmatch(replica.partition.topic):
                        lags[replica.partition] = max(lags.get(replica.partition, 0), replica.offset_lag)
    return lags


def _now() -> str:
    return datetime.now().strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]


if __name__ == "__main__":
    sys.exit(main())
