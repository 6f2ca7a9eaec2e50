"""The command `ksql-test-runner`: do statements make the expected records of the given ones? Start at `main`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moldau.cli.command_line import CommandParser
from moldau.cli.tool import ToolError, run_body
from moldau.core.errors import MoldauError
from moldau.formats.json_reading import load_exact
from moldau.pipeline.cores.sql.functions.libraries import load_functions
from moldau.pipeline.ksql.trial.records import MismatchError
from moldau.pipeline.ksql.trial.running import TrialRun

__all__ = ["main", "parser"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one test; returns 0 if it passed, 1 if not."""
    options = parser().parse_args(arguments)
    return run_body(lambda: _run(options), _report)


def _run(options: argparse.Namespace) -> int:
    statements = _text(options.sql_file)
    inputs = _records(options.input_file, "inputs") if options.input_file else []
    outputs = _records(options.output_file, "outputs")
    trial = TrialRun(load_functions(Path(options.extension_dir)))
    try:
        trial.execute(statements)
        trial.feed(inputs)
        trial.check(outputs, has_inputs=bool(inputs))
    except MismatchError as mismatch:
        raise ToolError(str(mismatch)) from None
    print("\t >>> Test passed!")
    return 0


def _report(error: MoldauError) -> None:
    print(f"\t >>>>> Test failed: {error}", file=sys.stderr)


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"{file} is not UTF-8") from None
    except OSError as error:
        raise ToolError(f"cannot read {file}: {error.strerror}") from None


def _records(file: str, member: str) -> list[Any]:
    """The records of a file: `{"inputs": [{"topic": …, "key": …, "value": …}]}`, with exact numbers."""
    try:
        document = load_exact(_text(file).encode())
    except (ValueError, RecursionError) as error:
        raise ToolError(f"{file} is not JSON: {error}") from None
    records = document.get(member) if isinstance(document, dict) else None
    if not isinstance(records, list) or not records:
        raise ToolError(f'{file} must hold an object with "{member}", a list of at least one record')
    for number, record in enumerate(records):
        if not isinstance(record, dict) or not isinstance(record.get("topic"), str):
            raise ToolError(f'{file}: record {number} of "{member}" needs a "topic"')
        if not isinstance(record.get("timestamp", 0), int):
            raise ToolError(f'{file}: record {number} of "{member}" has a timestamp that is not a whole number')
    return records


def parser() -> CommandParser:
    made = CommandParser(
        prog="ksql-test-runner",
        description="Run statements over given records in memory, and compare what they write with what is expected.\n"
        "No server is needed.",
        epilog="example:\n"
        "  ksql-test-runner -s statements.sql -i input.json -o output.json\n\n"
        'input.json:  {"inputs":  [{"topic": "orders", "timestamp": 0, "key": 1, "value": {"AMOUNT": 5}}]}\n'
        'output.json: {"outputs": [{"topic": "LARGE", "timestamp": 0, "key": 1, "value": {"AMOUNT": 5}}]}\n',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("-s", "--sql-file", required=True, metavar="FILE", help="the statements")
    made.add_argument("-i", "--input-file", metavar="FILE", help="the records that are fed; none with INSERT VALUES")
    made.add_argument(
        "-e",
        "--extension-dir",
        metavar="FOLDER",
        default="ext",
        help="modules with your functions (default: ext)",
    )
    made.add_argument("-o", "--output-file", required=True, metavar="FILE", help="the records that are expected")
    return made


if __name__ == "__main__":
    sys.exit(main())
