"""kafka-dump-log: prints the content of segments, indexes, snapshots and checkpoints.

`log.dump.dump` produces the text; this module has the options. Start at `main`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.tool import run
from moldau.core.errors import MoldauError
from moldau.log.dump.dump import DumpError, DumpOptions, Problems, dump_file
from moldau.log.dump.dump_batches import NO_LIMIT, RecordText, plain_text

__all__ = ["main"]

STRING_DECODERS = ("org.apache.kafka.tools.api.StringDecoder", "kafka.serializer.StringDecoder")
DECODERS = (
    "cluster-metadata-decoder",
    "offsets-decoder",
    "transaction-log-decoder",
    "value-decoder-class",
    "key-decoder-class",
)
UNSUPPORTED = ("remote-log-metadata-decoder", "share-group-state-decoder")

PARSER = Parser(
    "Show what the files of a log hold: segments, indexes, producer snapshots, metadata snapshots, checkpoints.",
    [
        Option("files", "The files, separated by commas.", "file,file,...", is_required=True),
        Option("print-data-log", "Show keys and payloads. Implied by any decoder."),
        Option("deep-iteration", "Show every record and not only batches. Implied by --print-data-log."),
        Option("verify-index-only", "Compare indexes with the log without showing their entries."),
        Option("index-sanity-check", "Check indexes as a starting broker does, without showing their entries."),
        Option("max-message-size", "Size of the largest batch an index may point to.", "bytes", int, 5 * 1024 * 1024),
        Option("max-bytes", "Stop after this many bytes of a segment.", "bytes", int, NO_LIMIT),
        Option("value-decoder-class", "How values are read; only strings.", "class", bare_value=STRING_DECODERS[0]),
        Option("key-decoder-class", "How keys are read; only strings.", "class", bare_value=STRING_DECODERS[0]),
        Option("cluster-metadata-decoder", "Read the records as cluster metadata."),
        Option("offsets-decoder", "Read the records as groups and their offsets."),
        Option("transaction-log-decoder", "Read the records as transactions."),
        *(Option(name, "Not supported.", is_hidden=True) for name in UNSUPPORTED),
        Option("skip-record-metadata", "Show keys and payloads alone."),
    ],
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(PARSER, _dump, argv, report=_report)


def _dump(parsed: Parsed) -> int:
    prints_data = any(parsed.has(name) for name in ("print-data-log", *DECODERS))
    options = DumpOptions(
        prints_data=prints_data,
        is_deep=prints_data or parsed.has("deep-iteration"),
        skips_record_metadata=parsed.has("skip-record-metadata"),
        verifies_only=parsed.has("verify-index-only"),
        checks_sanity_only=parsed.has("index-sanity-check"),
        max_message_bytes=parsed.value("max-message-size"),
        max_bytes=parsed.value("max-bytes"),
        text_of=_text_of(parsed),
    )
    problems = Problems(on_note=_complain)
    for path in parsed.value("files").split(","):
        print(f"Dumping {path}")
        try:
            for line in dump_file(path, options, problems):
                print(line)
        except OSError as error:
            raise DumpError(f"{path}: {error.strerror}") from None
    for line in problems.lines():
        _complain(line)
    return 0


def _text_of(parsed: Parsed) -> RecordText:
    for name in UNSUPPORTED:
        if parsed.has(name):
            raise UsageError(f"--{name} is not supported: moldau does not write that topic")
    for name in ("key-decoder-class", "value-decoder-class"):
        if parsed.has(name) and parsed.value(name) not in STRING_DECODERS:
            raise UsageError(f"--{name} {parsed.value(name)}: no Java class can be loaded here; only strings are read")
    if parsed.has("cluster-metadata-decoder"):
        from moldau.log.dump.dump_metadata import metadata_text

        return metadata_text
    if parsed.has("offsets-decoder") or parsed.has("transaction-log-decoder"):
        from moldau.log.dump.dump_coordinators import offsets_text, transactions_text

        return offsets_text if parsed.has("offsets-decoder") else transactions_text
    return plain_text


def _complain(line: str) -> None:
    sys.stdout.flush()
    print(line, file=sys.stderr, flush=True)


def _report(error: MoldauError) -> None:
    _complain(str(error))
