"""Many seeds, side by side: `scripts/streams-oracle --seeds 200`.

Every case runs in Kafka Streams and in moldau. What differs is made small and written down, and the command fails.
Start at `main`.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.oracle.streams.comparison import differences, oracle_result
from tests.oracle.streams.families import FAMILIES, draw_case
from tests.oracle.streams.jvm import KafkaStreamsOracle, missing
from tests.oracle.streams.running import run
from tests.oracle.streams.shrinking import shrunk

Case = dict[str, Any]


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    reason = missing()
    if reason:
        print(reason, file=sys.stderr)
        return 2
    # Records that cases leave out on purpose would be told one by one.
    logging.disable(logging.CRITICAL)
    begun, equal, refused = time.monotonic(), Counter[str](), Counter[str]()
    failures = 0
    with KafkaStreamsOracle() as oracle:
        for family, case in _cases(options):
            oracle.send(case)
            ours = run(case)
            theirs = oracle_result(oracle.receive())
            found = differences(theirs, ours, is_partitioned=case.get("partitions", 1) > 1)
            if not found:
                (refused if theirs.error else equal)[family] += 1
                continue
            failures += 1
            _report(oracle, case, found, is_shrinking=not options.no_shrink)
            if failures >= options.stop_after:
                break
    seconds = time.monotonic() - begun
    print(f"{equal.total()} cases equal, {refused.total()} refused by both, {failures} differ, in {seconds:.0f} s")
    for family in FAMILIES:
        if equal[family] or refused[family]:
            print(f"  {family}: {equal[family]} equal" + (f", {refused[family]} refused" if refused[family] else ""))
    return 1 if failures else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="streams-oracle", description=__doc__)
    parser.add_argument("--seeds", type=int, default=50, help="cases of each family (default 50)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--family", action="append", help="only this family; may be given several times")
    parser.add_argument("--stop-after", type=int, default=10, help="stop after this many differences (default 10)")
    parser.add_argument("--no-shrink", action="store_true", help="write cases that differ as they are")
    parser.add_argument("--case", help="run the cases of this file, one line of JSON each")
    return parser.parse_args(arguments)


def _cases(options: argparse.Namespace) -> Iterator[tuple[str, Case]]:
    if options.case:
        with open(options.case, encoding="utf-8") as lines:
            for line in lines:
                case = json.loads(line)
                yield str(case["id"]).split("/", maxsplit=1)[0], case
        return
    for seed in range(options.first, options.first + options.seeds):
        for family in options.family or FAMILIES:
            yield family, draw_case(family, seed)


def _report(oracle: KafkaStreamsOracle, case: Case, found: list[str], *, is_shrinking: bool) -> None:
    def compared(candidate: Case) -> list[str]:
        theirs = oracle_result(oracle.ask(candidate))
        if theirs.error and "TopologyException" in theirs.error:
            return []
        return differences(theirs, run(candidate), is_partitioned=candidate.get("partitions", 1) > 1)

    if is_shrinking:
        case = shrunk(case, lambda candidate: _kinds(compared(candidate)) == _kinds(found))
        found = compared(case)
    print(f"== {case['id']}")
    print(json.dumps(case, ensure_ascii=False))
    print("\n".join(found), flush=True)


def _kinds(found: list[str]) -> set[str]:
    """What kind of difference it is, so that shrinking does not end at another one."""
    return {sentence.split(" ", maxsplit=1)[0][:6] for sentence in found}


if __name__ == "__main__":
    sys.exit(main())
