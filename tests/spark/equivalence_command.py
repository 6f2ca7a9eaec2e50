"""Many rounds of the comparison between the test driver and Spark: `scripts/streams-equivalence --rounds 20`."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.spark.equivalence import GROUPS, disagreements, drawn, in_memory, on_spark


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="streams-equivalence", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="topologies of each group (default 5)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--group", action="append", choices=list(GROUPS), help="only this group")
    parser.add_argument("--partitions", type=int, default=2, help="partitions of every topic (default 2)")
    options = parser.parse_args(arguments)
    # Records that cases leave out on purpose would be told one by one.
    logging.disable(logging.CRITICAL)
    differing = 0
    for seed in range(options.first, options.first + options.rounds):
        for group in options.group or GROUPS:
            differing += _differs(group, seed, options.partitions)
    print(f"{differing} of {options.rounds * len(options.group or GROUPS)} topologies differ")
    return 1 if differing else 0


def _differs(group: str, seed: int, partitions: int) -> bool:
    begun, case = time.monotonic(), drawn(group, seed, partitions=partitions)
    expected = in_memory(case)
    found = disagreements(expected, on_spark(case))
    size = f"{len(case['ops'])} operators, {len(case['inputs'])} inputs, {len(expected.outputs)} outputs"
    verdict = "differs" if found else "equal"
    print(f"{case['id']}: {verdict}; {size}, {time.monotonic() - begun:.0f} s", *found, sep="\n", flush=True)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
