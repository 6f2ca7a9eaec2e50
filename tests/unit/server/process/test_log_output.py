"""What log lines look like."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from moldau.server.process.log_output import configure_logging


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    logger = logging.getLogger("moldau")
    before = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:], logger.level, logger.propagate = before


def test_text_lines_have_kafkas_layout() -> None:
    stream = io.StringIO()
    configure_logging("text", stream=stream)
    logging.getLogger("moldau.log").warning("cut %d bytes", 12)
    stamp = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\]"
    assert re.fullmatch(stamp + r" WARN cut 12 bytes \(moldau\.log\)\n", stream.getvalue())


def test_json_lines_carry_the_fields_beside_the_message() -> None:
    stream = io.StringIO()
    configure_logging("json", stream=stream)
    logging.getLogger("moldau.net").info("closed", extra={"fields": {"peer": "127.0.0.1:5"}})
    entry = json.loads(stream.getvalue())
    assert (entry["level"], entry["message"], entry["peer"]) == ("INFO", "closed", "127.0.0.1:5")


def test_exceptions_stay_on_their_json_line() -> None:
    stream = io.StringIO()
    configure_logging("json", stream=stream)
    try:
        raise ValueError("boom")
    except ValueError:
        logging.getLogger("moldau").exception("failed")
    assert "ValueError: boom" in json.loads(stream.getvalue())["exception"]


def test_a_name_with_line_ends_cannot_begin_a_line_of_its_own() -> None:
    stream = io.StringIO()
    configure_logging("text", stream=stream)
    logging.getLogger("moldau.x").info("group %s: joined", "a\n[2026-01-01 00:00:00,000] FATAL \x1b[2J")
    assert len(stream.getvalue().splitlines()) == 1
    assert "group a\\n[2026" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
