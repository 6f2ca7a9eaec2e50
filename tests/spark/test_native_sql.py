"""SQL that Spark computes natively gives what Python gives, record by record, errors in the processing log included."""

from __future__ import annotations

import base64
import json
import random
import struct
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.sql_on_spark import Given, Output, QueryOnBoth, planned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    "id STRING KEY, small INT, big BIGINT, other BIGINT, real DOUBLE, ratio DOUBLE, text STRING, word STRING, "
    "yes BOOLEAN, price DECIMAL(10, 2), cost DECIMAL(6, 3), happened TIMESTAMP, day DATE, clock TIME"
)
CREATE = f"CREATE STREAM s ({COLUMNS}) WITH (kafka_topic='input', value_format='{{format}}', partitions=1);"

SMALL = [None, 0, 1, -1, 7, -7, 2**31 - 1, -(2**31), 12]
BIG = [None, 0, 1, -1, 5, -3, 2**63 - 1, -(2**63), 2**53 + 1, 10**12]
REAL = [None, 0.0, -0.0, 1.5, -2.5, 1e300, 1e-7, 0.1, 1 / 3, 123456789.125, 2e-3, 1e7, 5e-324, 1e22]
TEXT = [
    None, "", "a", "abc", " abc\t", "Grüße ß", "🙂x🙂", "\ufffdz", "\uffee", "a%b_c", "line\nend", "\x00\x1b", 'q"u\\o',
    "12", "+7", "007", "1.5e3", "0.00000001", "[1]", "{x", "10.0.0.1", "İı", "\u2028", "x" * 300,
    "99999999999999999999",
]  # fmt: skip
DECIMALS = [None, "0", "1.25", "-99999999.99", "12345678.9", "0.01", "3"]
COSTS = [None, "0", "1.125", "-999.999", "12.3"]
TIMES = [None, 0, 86_399_999, 1_700_000_000_000]


def documents(count: int, seed: int) -> list[Given]:
    """JSON documents, most of them as one would write them."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        members: dict[str, Any] = {
            "SMALL": chance.choice(SMALL),
            "BIG": chance.choice(BIG),
            "OTHER": chance.choice(BIG),
            "REAL": chance.choice(REAL),
            "RATIO": chance.choice([*REAL, chance.uniform(-5, 5)]),
            "TEXT": chance.choice(TEXT),
            "WORD": chance.choice(TEXT),
            "YES": chance.choice([None, True, False]),
            "PRICE": chance.choice(DECIMALS),
            "COST": chance.choice(COSTS),
            "HAPPENED": chance.choice(TIMES),
            "DAY": chance.choice([None, 0, -5, 20_000]),
            "CLOCK": chance.choice([None, 0, 86_399_999]),
        }
        key = chance.choice([None, b"", b"k", "ß🙂".encode(), b"\xff"])
        made.append(Given(key, _rendered(members, chance), 1000 + number))
    return made


def _rendered(members: dict[str, Any], chance: random.Random) -> bytes | None:
    """A document, sometimes with other names, tokens or bytes."""
    if chance.random() < 0.3:
        members = {name: value for name, value in members.items() if chance.random() < 0.7}
    case = chance.choice([str.upper, str.upper, str.lower, str.lower, str.title, str])
    texts = []
    for name, value in members.items():
        shown = json.dumps(value, ensure_ascii=chance.random() < 0.5)
        if name in ("PRICE", "COST") and value is not None and chance.random() < 0.7:
            shown = value
        if chance.random() < 0.04:
            shown = chance.choice(ODD_TOKENS)
        texts.append(f"{json.dumps(case(name))}:{chance.choice(['', ' '])}{shown}")
        if chance.random() < 0.02:
            texts.append(f"{json.dumps(chance.choice([str.upper, str.lower, str.title])(name))}:{shown}")
    whole = "{" + ",".join(texts) + "}"
    if chance.random() < 0.08:
        return chance.choice(ODD_DOCUMENTS)(whole)
    return whole.encode("utf-8", "surrogatepass")


ODD_TOKENS = [
    '"5"', "5", "5.0", "1e2", "-0", "-0.0", "true", '"true"', "null", "[]", "{}", "[1, null]", '{"a": 1.0}', '"NaN"',
    "NaN",
    "1e400", "99999999999999999999", "2147483648", '"\\ud83d\\ude42"', '"\\u00df"', '"\\u001f"', "0.10", "1.2345",
    '"INF"', "1E5",
    "86400001", "-1", '""', '" 7"', "012", "'x'", "Infinity", '"1.5e3"',
]  # fmt: skip
ODD_DOCUMENTS = [
    lambda text: None,
    lambda text: b"",
    lambda text: b"null",
    lambda text: b"{}",
    lambda text: f"[{text}]".encode(),
    lambda text: f" {text}".encode(),
    lambda text: f"{text} trailing".encode(),
    lambda text: text[:-1].encode(),
    lambda text: text.encode() + b"\xff",
    lambda text: text.encode().replace(b"a", b"\xc3"),
    lambda text: b"\xef\xbb\xbf" + text.encode(),
    lambda text: b"5",
    lambda text: text.encode("utf-16"),
]

SELECTS = {
    "all columns": "*",
    "pseudo columns": "id, ROWTIME AS t, ROWPARTITION AS p, ROWOFFSET AS o, text",
    "whole numbers": "id, small + 1 AS a, big - other AS b, small * small AS c, big * 3 AS d, -small AS e, -big AS f",
    "quotients": "id, small / 7 AS a, big / other AS b, big % other AS c, small % 3 AS d, big / -1 AS e",
    "doubles": (
        "id, real + ratio AS a, real * 2 AS b, real / ratio AS c, real - small AS d, -real AS e, real % ratio AS f"
    ),
    "decimals": "id, price + cost AS a, price - cost AS b, price * cost AS c, -price AS d, price + small AS e",
    "comparisons": (
        "id, small = big AS a, real < ratio AS b, text < word AS c, text = word AS d, text <> word AS e,"
        " price > cost AS f,"
        " big >= real AS g, yes = true AS h, text IS DISTINCT FROM word AS i, real IS NOT DISTINCT FROM ratio AS j,"
        " price <= small AS k, happened < happened AS l, small BETWEEN -7 AND 7 AS m"
    ),
    "logic": (
        "id, yes AND small > 0 AS a, small > 0 OR yes AS b, NOT yes AS c, text IS NULL AS d, big IS NOT NULL AS e, "
        "small IN (1, 7, 12) AS f, text IN ('a', 'abc', '12') AS g, (small IS NULL OR small + 1 > 0) AS h"
    ),
    "case": (
        "id, CASE WHEN small > 0 THEN 'plus' WHEN small < 0 THEN text ELSE 'none' END AS a, "
        "CASE WHEN small IS NULL THEN 0 ELSE small + 1 END AS b, CASE WHEN yes THEN 1 END AS c"
    ),
    "like": (
        "id, text LIKE 'a%' AS a, text LIKE '%c' AS b, text LIKE '%b%' AS c, text LIKE '_bc' AS d,"
        " text LIKE 'a.c' AS e,"
        " text LIKE 'a%b\\_c' AS f, text LIKE '' AS g, text LIKE '%' AS h"
    ),
    "casts": (
        "id, CAST(small AS BIGINT) AS a, CAST(big AS INT) AS b, CAST(big AS DOUBLE) AS c, CAST(real AS INT) AS d, "
        "CAST(ratio AS BIGINT) AS e, CAST(small AS STRING) AS f, CAST(real AS STRING) AS g, CAST(text AS INT) AS h, "
        "CAST(word AS BIGINT) AS i, CAST(small AS DECIMAL(6, 2)) AS j, CAST(price AS DECIMAL(4, 1)) AS k, "
        "CAST(price AS STRING) AS l, CAST(yes AS STRING) AS m, CAST(big AS STRING) AS n"
    ),
    "text": (
        "id, UCASE(text) AS a, LCASE(text) AS b, LEN(text) AS c, TRIM(text) AS d, SUBSTRING(text, 3) AS e, "
        "SUBSTRING(text, 3, 1) AS f, CONCAT(text, '-', word) AS g, text + word AS h, COALESCE(text, word) AS i, "
        "IFNULL(text, 'none') AS j, SUBSTRING(word, 6, 100) AS k"
    ),
    "numbers": (
        "id, ABS(small) AS a, ABS(big) AS b, ABS(real) AS c, FLOOR(small) AS d, CEIL(big) AS e, SIGN(small) AS f"
    ),
}
CONDITIONS = ["", "WHERE small > 0", "WHERE yes", "WHERE small + 1 > 0 AND text IS NOT NULL", "WHERE text LIKE '%a%'"]


@pytest.mark.parametrize("name", SELECTS)
def test_json_and_expressions_give_the_same(spark: SparkSession, name: str) -> None:
    number = list(SELECTS).index(name)
    condition = CONDITIONS[number % len(CONDITIONS)]
    query = f"CREATE STREAM t AS SELECT {SELECTS[name]} FROM s {condition};"
    compare(spark, CREATE.format(format="JSON") + query, documents(1500, seed=number))


def compare(spark: SparkSession, statements: str, records: list[Given]) -> int:
    query = QueryOnBoth(planned(statements))
    outputs, odd = query.on_spark(spark, records)
    expected = query.in_memory(records)
    differing = [(got, want) for got, want in zip(outputs, expected, strict=False) if got != want]
    assert not differing, f"{len(differing)} differ, such as {differing[:2]}"
    assert len(outputs) == len(expected)
    return odd


def test_plain_rows_stay_in_spark(spark: SparkSession) -> None:
    records = [
        Given(b"k", json.dumps({"SMALL": n, "BIG": n * 7, "TEXT": f"text {n}", "REAL": n / 4}).encode())
        for n in range(99)
    ]
    query = (
        "CREATE STREAM t AS SELECT id, small + 1 AS a, big * 2 AS b, UCASE(text) AS c, real FROM s WHERE small >= 0;"
    )
    assert compare(spark, CREATE.format(format="JSON") + query, records) == 0
    lower = [Given(one.key, (one.value or b"").lower()) for one in records]
    assert compare(spark, CREATE.format(format="JSON") + query, lower) == 0


def test_numbers_as_keys_and_other_formats(spark: SparkSession) -> None:
    create = (
        "CREATE STREAM s (id {key} KEY, a INT, b BIGINT, c DOUBLE, d STRING, e BOOLEAN, f DECIMAL(8, 2)) "
        "WITH (kafka_topic='input', value_format='DELIMITED', partitions=1);"
    )
    chance = random.Random(3)
    fields = [
        "",
        "1",
        "-5",
        "+3",
        "2147483648",
        "1.5",
        "x",
        '"q,r"',
        "true",
        "TRUE",
        "9999999999",
        "1e3",
        " 7",
        "-0.25",
        "ß",
    ]
    records = [
        Given(
            chance.choice([struct.pack(">i", n), struct.pack(">i", -n), b"", None]),
            chance.choice(
                [",".join(chance.choice(fields) for _ in range(6)), "1,2,3.5,x,true,4.25", "", "1,2"]
            ).encode(),
        )
        for n in range(800)
    ]
    select = "SELECT id, a, b, c, d, e, f FROM s;"
    compare(spark, create.format(key="INT") + f"CREATE STREAM t AS {select}", records)
    compare(spark, create.format(key="INT") + f"CREATE STREAM t WITH (value_format='JSON') AS {select}", records)


def test_another_key_and_time(spark: SparkSession) -> None:
    create = CREATE.format(format="JSON").replace("partitions=1", "partitions=1, timestamp='happened'")
    records = documents(800, seed=99)
    query = "CREATE STREAM t AS SELECT * FROM s PARTITION BY big;"
    compare(spark, create + query, records)
    compare(spark, create + "CREATE STREAM t WITH (timestamp='big') AS SELECT * FROM s PARTITION BY word;", records)


GROUPS = {
    "by the key": "SELECT id, COUNT(*) AS n, SUM(small) AS a, SUM(big) AS b, MIN(real) AS c FROM s GROUP BY id",
    "by a column": (
        "SELECT word, COUNT(text) AS n, AVG(small) AS a, MAX(price) AS b, MIN(happened) AS c, SUM(big) AS d FROM s "
        "WHERE small IS NOT NULL GROUP BY word HAVING COUNT(*) > 3"
    ),
    "in windows": (
        "SELECT id, COUNT(*) AS n, SUM(small) AS a, WINDOWSTART AS b, WINDOWEND AS c FROM s "
        "WINDOW TUMBLING (SIZE 100 MILLISECONDS) GROUP BY id"
    ),
    "in hopping windows": (
        "SELECT id, COUNT(*) AS n FROM s WINDOW HOPPING (SIZE 100 MILLISECONDS, ADVANCE BY 30 MILLISECONDS) GROUP BY id"
    ),
}


def clean_documents(count: int) -> list[Given]:
    """Records that are all as the columns of the source say."""
    chance = random.Random(7)
    made = []
    for number in range(count):
        members = {
            "SMALL": chance.choice(SMALL),
            "big": chance.choice(BIG),
            "REAL": chance.choice(REAL),
            "TEXT": chance.choice([None, "a", "b"]),
            "WORD": chance.choice([None, "x", "ß", "🙂"]),
            "PRICE": chance.choice([None, 1, -25]),
            "HAPPENED": chance.choice(TIMES),
        }
        key = chance.choice([None, b"", b"k", "ß🙂".encode()])
        value = None if number % 50 == 0 else json.dumps(members, ensure_ascii=False).encode()
        made.append(Given(key, value, 1000 + number))
    return made


def last_of_each(outputs: list[Output]) -> dict[bytes | None, Any]:
    return {key: None if value is None else json.loads(value) for topic, key, value, _ in outputs if topic == "T"}


@pytest.mark.parametrize("name", GROUPS)
def test_real_time_aggregates_end_with_the_same(spark: SparkSession, name: str) -> None:
    query = QueryOnBoth(planned(CREATE.format(format="JSON") + f"CREATE TABLE t AS {GROUPS[name]};"))
    records = clean_documents(600)
    odd = [Given(b"k", b'{"SMALL": "5"}', 1300), Given(b"k", b"no JSON", 1301)]
    outputs = query.in_real_time(spark, [*records, *odd])
    assert last_of_each(outputs) == last_of_each(query.in_memory(records))
    (entry,) = (json.loads(value or b"") for topic, _, value, _ in outputs if topic == "log")
    assert base64.b64decode(entry["message"]["deserializationError"]["recordB64"]) == b"no JSON"


def test_a_real_time_filter_logs_what_it_does_not_process(spark: SparkSession) -> None:
    query = "CREATE STREAM t AS SELECT id, small + 1 AS a FROM s WHERE small > 0;"
    records = [Given(b"k", b'{"SMALL": 1}'), Given(b"k", b'{"SMALL": 0}'), Given(b"k", b"no JSON"), Given(b"k", None)]
    outputs = QueryOnBoth(planned(CREATE.format(format="JSON") + query)).in_real_time(spark, records)
    assert [(topic, value) for topic, _, value, _ in outputs if topic == "T"] == [("T", b'{"A":2}')]
    assert [topic for topic, *_ in outputs] == ["T", "log"]
