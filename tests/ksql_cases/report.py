"""The results of all conformance cases as text: per file, per capability, and the failures with their reasons.

Run by `scripts/ksql-cases`.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence

from tests.ksql_cases.cases import FOLDER, capabilities, load_cases
from tests.ksql_cases.runner import Result, run_case


def table(title: str, results: Iterable[tuple[str, Result]]) -> list[str]:
    """Lines of passed and all, by a name of each result."""
    passed: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for name, result in results:
        total[name] += 1
        passed[name] += result.passed
    lines = [f"{title}:"]
    for name in sorted(total):
        share = 100 * passed[name] / total[name]
        lines.append(f"  {name:<45} {passed[name]:>4}/{total[name]:<4} {share:5.1f} %")
    return lines


def report(results: Sequence[Result]) -> list[str]:
    """All lines of the report."""
    errors = [result for result in results if result.case.expected_error is not None]
    right_kind = sum(result.passed or result.has_right_kind for result in errors)
    passed = sum(result.passed for result in results)
    return [
        *table("by file", ((result.case.file, result) for result in results)),
        *table("by capability", ((row, result) for result in results for row in capabilities(result.case))),
        f"error cases: {right_kind}/{len(errors)} raised at the right place and kind, "
        f"{sum(result.passed for result in errors)}/{len(errors)} with the text",
        "failures:",
        *(f"  {result.case.full_name}\n    {result.reason}" for result in results if not result.passed),
        f"all: {passed}/{len(results)} ({100 * passed / max(len(results), 1):.1f} %)",
    ]


def main(words: Sequence[str]) -> int:
    """Print the report; 0 if all cases passed."""
    if not FOLDER.is_dir():
        sys.stderr.write(f"there are no cases: {FOLDER} does not exist\n")
        return 2
    begun = time.monotonic()
    cases = [case for case in load_cases() if not words or any(word in case.full_name for word in words)]
    results = [run_case(case) for case in cases]
    sys.stdout.write("\n".join(report(results)) + "\n")
    sys.stdout.write(f"in {time.monotonic() - begun:.1f} s\n")
    return 0 if all(result.passed for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
