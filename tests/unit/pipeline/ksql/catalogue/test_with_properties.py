from __future__ import annotations

import pytest

from moldau.core.errors import MoldauError
from moldau.pipeline.ksql.catalogue.sources import KeyWindow, TimestampColumn, WindowKind
from moldau.pipeline.ksql.catalogue.with_properties import CREATE, WithProperties, folded_name
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.ksql.syntax.statements import CreateSource


def properties(text: str) -> WithProperties:
    (statement,) = parse(f"CREATE STREAM S (A INT) WITH ({text});")
    assert isinstance(statement, CreateSource)
    return WithProperties.of(statement.properties, CREATE)


def test_values_are_read_by_type() -> None:
    made = properties("kafka_topic='t', partitions=3, replicas='2', wrap_single_value=false")
    assert made.text("KAFKA_TOPIC") == "t"
    assert (made.number("PARTITIONS"), made.number("REPLICAS")) == (3, 2)
    assert made.flag("WRAP_SINGLE_VALUE") is False
    assert made.text("TIMESTAMP") is None


def test_windows_and_times() -> None:
    made = properties("window_type='Hopping', window_size='30 seconds', timestamp='ts', timestamp_format='yyyy'")
    assert made.window() == KeyWindow(WindowKind.HOPPING, 30_000)
    assert made.timestamp() == TimestampColumn("TS", "yyyy")
    assert properties("window_type='session'").window() == KeyWindow(WindowKind.SESSION)


def test_names_in_texts_fold_unless_they_are_quoted() -> None:
    assert (folded_name("ts"), folded_name("`ts`"), folded_name('"a""b"')) == ("TS", "ts", 'a"b')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format='JSON', key_format='KAFKA'", "Cannot supply both 'KEY_FORMAT' and 'FORMAT' properties"),
        ("value_delimiter='abc'", "Configuration VALUE_DELIMITER is invalid"),
        ("window_type='session', window_size='1 day'", "'WINDOW_SIZE' should not be set for SESSION windows."),
        ("window_type='tumbling'", "TUMBLING windows require 'WINDOW_SIZE'"),
        ("window_type='tumbling', window_size='a while'", "Invalid duration: 'a while'"),
        ("window_type='sliding'", "String must be one of: HOPPING, SESSION, TUMBLING"),
        ("cleanup_policy='compact'", "Users can't set the CLEANUP_POLICY config manually."),
        ("nonsense=1", "Invalid config variable(s) in the WITH clause: NONSENSE"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(MoldauError) as refusal:
        properties(text)
    assert message in str(refusal.value)


def test_a_number_is_a_number() -> None:
    with pytest.raises(MoldauError, match="Not a number of type INT"):
        properties("partitions='many'").number("PARTITIONS")
