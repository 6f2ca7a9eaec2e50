from __future__ import annotations

import struct

from moldau.ksql.queries.print_formats import FormatGuess, key_formats, value_formats


def test_formats_are_narrowed_while_reading() -> None:
    values = FormatGuess("Value", value_formats(None))
    assert values.text(b'{"a":1}') == '{"a":1}'
    assert values.news() == "Value format: JSON or KAFKA_STRING"
    assert values.text(b"plain") == "plain"
    assert values.news() == "Value format: KAFKA_STRING"
    assert values.news() is None
    assert values.text(b"\xff\xfe") == "fffe"
    assert values.news() == "Value format: does not match any supported format"


def test_nothing_is_known_without_data() -> None:
    keys = FormatGuess("Key", key_formats(None))
    assert keys.text(None) == "<null>"
    assert (keys.news() or "").endswith("no data processed")


def test_windowed_keys_show_their_bounds() -> None:
    keys = FormatGuess("Key", key_formats(None))
    assert keys.text(b"k" + struct.pack(">q", 12000)) == "[k@12000/-]"
    assert "TUMBLING(KAFKA_STRING)" in (keys.news() or "")
    sessions = FormatGuess("Key", key_formats(None))
    assert sessions.text(b"key" + struct.pack(">qq", 13000, 12000)) == "[key@12000/13000]"


def test_numbers() -> None:
    assert FormatGuess("Key", key_formats(None)).text(struct.pack(">i", -5)) == "-5"
    assert FormatGuess("Value", value_formats(None)).text(struct.pack(">q", 2**40)) == str(2**40)
