"""Many rounds of the comparison between the test driver and Spark: `scripts/streams-equivalence --rounds 20`."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.spark import mixed_topologies as mixed
from tests.spark.equivalence import GROUPS, Outcome, disagreements, drawn, in_memory, on_spark

from moldau.pipeline.spark.driver.session import open_session, session_settings

ALL = (*GROUPS, "mixed")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="streams-equivalence", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="topologies of each group (default 5)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--group", action="append", choices=ALL, help="only this group")
    parser.add_argument("--partitions", type=int, default=2, help="partitions of every topic (default 2)")
    options = parser.parse_args(arguments)
    # Records that cases leave out on purpose would be told one by one.
    logging.disable(logging.CRITICAL)
    differing = 0
    for seed in range(options.first, options.first + options.rounds):
        for group in options.group or ALL:
            differing += _differs(group, seed, options.partitions)
    print(f"{differing} of {options.rounds * len(options.group or ALL)} topologies differ")
    return 1 if differing else 0


def _differs(group: str, seed: int, partitions: int) -> bool:
    begun = time.monotonic()
    expected, actual, size = _mixed(seed) if group == "mixed" else _of_families(group, seed, partitions)
    found = disagreements(expected, actual)
    verdict = "differs" if found else "equal"
    took = f"{len(expected.outputs)} outputs, {time.monotonic() - begun:.0f} s"
    print(f"{group}/{seed}: {verdict}; {size}, {took}", *found, sep="\n", flush=True)
    return bool(found)


def _of_families(group: str, seed: int, partitions: int) -> tuple[Outcome, Outcome, str]:
    case = drawn(group, seed, partitions=partitions)
    return in_memory(case), on_spark(case), f"{len(case['ops'])} operators, {len(case['inputs'])} inputs"


def _mixed(seed: int) -> tuple[Outcome, Outcome, str]:
    case = mixed.drawn(seed)
    outcome, run = mixed.on_spark(case, open_session(session_settings({}, threads=2)))
    sections = run.compiled.cut.sections
    size = f"{len(sections)} native sections, {sum(section.has_python for section in sections)} with Python around them"
    return mixed.in_memory(case), outcome, size


if __name__ == "__main__":
    sys.exit(main())
