from __future__ import annotations

import re
from typing import Any

import pytest
from tests.unit.pipeline.cores.sql.evaluating import evaluate

from moldau.pipeline.cores.sql.processing_log import ListLog


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("CHR(75)", "K"),
        (r"CHR('\u004b')", "K"),
        ("CHR(-1)", None),
        ("CHR('x')", None),
        ("UCASE('foo')", "FOO"),
        ("LCASE('FOO')", "foo"),
        ("INITCAP('  the QUICK  fox')", "The Quick  Fox"),
        ("TRIM(' a b ')", "a b"),
        ("LEN('abc')", 3),
        ("LEN('\U0001f600')", 2),
        ("LEN(TO_BYTES('abc', 'utf8'))", 3),
        ("MD5('moldau')", "51403721e9a8e9ee1e3ed60666518ddf"),
        ("CONCAT('a', NULL, 'b')", "ab"),
        ("'a' || 'b' || 'c'", "abc"),
        ("CONCAT_WS('-', 'a', NULL, 'b')", "a-b"),
        ("CONCAT_WS(CAST(NULL AS STRING), 'a', 'b')", None),
        ("ELT(2, 'a', 'b')", "b"),
        ("ELT(3, 'a', 'b')", None),
        ("FIELD('b', 'a', 'b')", 2),
        ("FIELD('x', 'a', 'b')", 0),
        ("SUBSTRING('stream', 1, 3)", "str"),
        ("SUBSTRING('stream', 0, 3)", "str"),
        ("SUBSTRING('stream', -3)", "eam"),
        ("SUBSTRING('stream', 4)", "eam"),
        ("SUBSTRING('stream', 9)", ""),
        ("SUBSTRING('a\U0001f600b', 4)", "b"),
        ("SPLIT('a,,b', ',')", ["a", "", "b"]),
        ("SPLIT('ab', '')", ["a", "b"]),
        ("SPLIT_TO_MAP('a=1;b=2;x;a=3', ';', '=')", {"a": "3", "b": "2"}),
        ("SPLIT_TO_MAP('a=1', '=', '=')", None),
        ("REPLACE('a.b.c', '.', '-')", "a-b-c"),
        ("REPLACE('ab', '', '-')", "-a-b-"),
        ("INSTR('corporate floor', 'or')", 2),
        ("INSTR('corporate floor', 'or', 3)", 5),
        ("INSTR('corporate floor', 'or', 3, 2)", 14),
        ("INSTR('corporate floor', 'or', -3)", 5),
        ("INSTR('corporate floor', 'or', -3, 2)", 2),
        ("INSTR('corporate floor', 'xx')", 0),
        ("LPAD('ab', 5, 'xyz')", "xyzab"),
        ("RPAD('ab', 5, 'xyz')", "abxyz"),
        ("LPAD('abcdef', 3, 'x')", "abc"),
        ("RPAD('ab', 5, '')", None),
        ("LPAD('ab', -1, 'x')", None),
        ("MASK('My Test $123')", "Xx-Xxxx--nnn"),
        ("MASK('My 1', '*', NULL, '#', NULL)", "*y #"),
        ("MASK_LEFT('AbC12', 2)", "XxC12"),
        ("MASK_RIGHT('AbC12', 2)", "AbCnn"),
        ("MASK_KEEP_LEFT('AbC12', 2)", "AbXnn"),
        ("MASK_KEEP_RIGHT('AbC12', 2)", "XxX12"),
        ("MASK_LEFT('AbC', 1, '.', '.', '.', '.')", ".bC"),
    ],
)
def test_functions_on_texts(expression: str, expected: Any) -> None:
    assert evaluate(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("REGEXP_EXTRACT('(.*) (.*)', 'hello there', 2)", "there"),
        ("REGEXP_EXTRACT('l+', 'hello')", "ll"),
        ("REGEXP_EXTRACT('x', 'hello')", None),
        ("REGEXP_EXTRACT('l', 'hello', 3)", None),
        ("REGEXP_EXTRACT_ALL('[a-z]\\d', 'a1 b2 c')", ["a1", "b2"]),
        ("REGEXP_EXTRACT_ALL('([a-z])(\\d)', 'a1 b2', 2)", ["1", "2"]),
        ("REGEXP_REPLACE('a1b22', '\\d+', '<$0>')", "a<1>b<22>"),
        ("REGEXP_REPLACE('john doe', '(\\w+) (\\w+)', '$2, $1')", "doe, john"),
        ("REGEXP_SPLIT_TO_ARRAY('a1b22c', '\\d+')", ["a", "b", "c"]),
        ("REGEXP_SPLIT_TO_ARRAY('abc', '')", ["a", "b", "c"]),
    ],
)
def test_regular_expressions(expression: str, expected: Any) -> None:
    assert evaluate(expression) == expected


def test_a_pattern_that_explodes_elsewhere_takes_linear_time() -> None:
    assert evaluate("REGEXP_EXTRACT('(a+)+$', T)", T=("STRING", "a" * 50_000 + "b")) is None


def test_look_around_is_refused_with_a_reason() -> None:
    log = ListLog()
    assert evaluate("REGEXP_EXTRACT('(?=a)a', 'a')", log) is None
    assert "look-around" in log.entries[0][1]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ENCODE('4578616d706c6521', 'hex', 'ascii')", "Example!"),
        ("ENCODE('0x578616d', 'hex', 'utf8')", "\x05xam"),
        ("ENCODE('X''4578''', 'hex', 'ascii')", "Ex"),
        ("ENCODE('Ex', 'utf8', 'base64')", "RXg="),
        ("ENCODE('RXg=', 'base64', 'hex')", "4578"),
        ("ENCODE('zz', 'hex', 'ascii')", None),
        ("FROM_BYTES(TO_BYTES('1ab2', 'hex'), 'hex')", "1AB2"),
        ("TO_BYTES('IQ==', 'base64')", b"!"),
        ("BIGINT_FROM_BYTES(TO_BYTES('0000000000000102', 'hex'))", 258),
        ("INT_FROM_BYTES(TO_BYTES('01020000', 'hex'), 'LITTLE_ENDIAN')", 513),
        ("INT_FROM_BYTES(TO_BYTES('01', 'hex'))", None),
        ("DOUBLE_FROM_BYTES(TO_BYTES('3FF0000000000000', 'hex'))", 1.0),
        ("CONCAT(TO_BYTES('a', 'ascii'), TO_BYTES('b', 'ascii'))", b"ab"),
        ("LPAD(TO_BYTES('a', 'ascii'), 3, TO_BYTES('.', 'ascii'))", b"..a"),
        ("SUBSTRING(TO_BYTES('abcd', 'ascii'), 2, 2)", b"bc"),
        ("SPLIT(TO_BYTES('a.b', 'ascii'), TO_BYTES('.', 'ascii'))", [b"a", b"b"]),
        ("UUID(TO_BYTES('00112233445566778899aabbccddeeff', 'hex'))", "00112233-4455-6677-8899-aabbccddeeff"),
    ],
)
def test_bytes_and_encodings(expression: str, expected: Any) -> None:
    assert evaluate(expression) == expected


def test_random_uuids_differ() -> None:
    one, other = evaluate("UUID()"), evaluate("UUID()")
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", one)
    assert one != other


def test_padding_to_gigabytes_is_refused() -> None:
    log = ListLog()
    assert evaluate("LPAD('a', 2000000000, 'x')", log) is None
    assert len(log.entries) == 1
