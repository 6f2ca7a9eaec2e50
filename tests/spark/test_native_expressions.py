"""Every expression that Spark runs by itself gives what Python gives, on values chosen to tell them apart."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from moldau.pipeline.cores.evaluation import compile_expression
from moldau.pipeline.ir.expressions import FUNCTIONS, Call, Cast, Column, Expression, FieldOf, Literal
from moldau.pipeline.ir.inference import type_of_literal, with_types
from moldau.pipeline.ir.types import Array, Primitive, Struct
from moldau.pipeline.spark.native.expressions import NotNativeError, lower, spark_type
from moldau.pipeline.spark.native.serdes import decoded_column, encoded_column, is_readable
from moldau.serdes.plain import IntegerSerde, JsonSerde, LongSerde, ShortSerde, StringSerde

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "number": Primitive.BIGINT,
    "other": Primitive.BIGINT,
    "small": Primitive.INTEGER,
    "real": Primitive.DOUBLE,
    "text": Primitive.STRING,
    "word": Primitive.STRING,
    "yes": Primitive.BOOLEAN,
    "no": Primitive.BOOLEAN,
    "list": Array(Primitive.BIGINT),
    "person": Struct((("name", Primitive.STRING), ("age", Primitive.BIGINT))),
}
ROWS: list[dict[str, Any]] = [
    {"number": 7, "other": 2, "small": 3, "real": 2.5, "text": "a.b.c", "word": "b", "yes": True, "no": False},
    {"number": -7, "other": 2, "small": -3, "real": -2.5, "text": " Grüße ß ", "word": "ß", "yes": False, "no": False},
    {"number": 7, "other": -2, "small": 0, "real": 0.0, "text": "", "word": "", "yes": True, "no": None},
    {"number": 0, "other": 0, "small": 1, "real": 1e300, "text": "x", "word": "x", "yes": None, "no": True},
    {
        "number": 2**62,
        "other": -(2**62),
        "small": 2**31 - 1,
        "real": -0.1,
        "text": "\\E(a|b)*",
        "word": "(a|b)",
        "yes": None,
    },
    {"number": None, "text": None, "list": [4, 5, None], "person": {"name": "Ada", "age": 36}},
    {"number": 1, "other": None, "text": "🙂x🙂", "word": None, "list": [], "person": {"name": None, "age": None}},
]


def column(name: str) -> Expression:
    return Column(TYPES[name], name)


def literal(value: object) -> Expression:
    return Literal(type_of_literal(value), value)


def call(function: str, *arguments: Expression) -> Expression:
    return with_types(Call(None, function, arguments), TYPES)


N, M, S, R, T, W = (column(name) for name in ("number", "other", "small", "real", "text", "word"))
Y, NO, L, P = (column(name) for name in ("yes", "no", "list", "person"))

CASES: dict[str, list[Expression]] = {
    "+": [call("+", S, M), call("+", T, W), call("+", R, S)],
    "-": [call("-", S, literal(5)), call("-", R, S)],
    "*": [call("*", S, S), call("*", R, literal(2))],
    "/": [call("/", N, M), call("/", R, S), call("/", N, literal(0))],
    "//": [call("//", N, M), call("//", N, literal(3)), call("//", N, literal(-3))],
    "%": [call("%", N, M), call("%", N, literal(3)), call("%", N, literal(-3))],
    "NEGATE": [call("NEGATE", S), call("NEGATE", R)],
    "=": [call("=", N, M), call("=", T, W), call("=", N, S), call("=", Y, NO)],
    "<>": [call("<>", N, M), call("<>", T, literal("x"))],
    "<": [call("<", N, M), call("<", T, W), call("<", S, R)],
    "<=": [call("<=", N, M), call("<=", T, W)],
    ">": [call(">", N, literal(5)), call(">", T, W)],
    ">=": [call(">=", N, M)],
    "AND": [call("AND", Y, NO)],
    "OR": [call("OR", Y, NO)],
    "NOT": [call("NOT", Y)],
    "IS NULL": [call("IS NULL", M)],
    "IS NOT NULL": [call("IS NOT NULL", W)],
    "IN": [call("IN", N, literal(7), literal(0)), call("IN", N, M, literal(1)), call("IN", T, literal("x"))],
    "IF": [call("IF", Y, N, M)],
    "COALESCE": [call("COALESCE", M, N, literal(-1))],
    "LEAST": [call("LEAST", N, M), call("LEAST", T, W)],
    "GREATEST": [call("GREATEST", N, M, S), call("GREATEST", T, W)],
    "ABS": [call("ABS", S), call("ABS", R)],
    "FLOOR": [call("FLOOR", call("-", S, literal(0.5)))],
    "CEIL": [call("CEIL", call("-", S, literal(0.5)))],
    "UPPER": [call("UPPER", T)],
    "LOWER": [call("LOWER", T)],
    "TRIM": [call("TRIM", T)],
    "LENGTH": [call("LENGTH", T)],
    "SUBSTRING": [call("SUBSTRING", T, literal(at), literal(2)) for at in (-9, -2, 0, 1, 3)],
    "CONCAT": [call("CONCAT", T, W, literal("!"))],
    "REPLACE": [call("REPLACE", T, literal("b"), literal("--"))],
    "SPLIT": [call("SPLIT", T, literal(".")), call("SPLIT", T, literal("a|b"))],
    "CONTAINS": [call("CONTAINS", T, W)],
    "STARTS WITH": [call("STARTS WITH", T, W)],
    "ENDS WITH": [call("ENDS WITH", T, W)],
    "ELEMENT": [call("ELEMENT", L, literal(at)) for at in (-1, 0, 2, 3)],
    "STRUCT": [call("STRUCT", literal("n"), N, literal("t"), T)],
    "ARRAY": [call("ARRAY", N, M)],
    "field": [FieldOf(Primitive.STRING, P, "name"), FieldOf(Primitive.BIGINT, P, "age")],
    "cast": [Cast(Primitive.STRING, N), Cast(Primitive.DOUBLE, S), Cast(Primitive.BIGINT, S)],
}
PYTHONS_OWN = {"ROUND", "PAIR"}


def test_every_function_is_tried_or_known_to_be_pythons_own() -> None:
    assert set(CASES) - {"field", "cast"} | PYTHONS_OWN == set(FUNCTIONS)


def test_what_spark_computes_is_what_python_computes(spark: SparkSession) -> None:
    from pyspark.sql import functions as f

    expressions = [(name, one) for name, ones in CASES.items() for one in ones]
    schema = ", ".join(f"`{name}` {spark_type(kind)}" for name, kind in TYPES.items())
    frame = spark.createDataFrame([tuple(row.get(name) for name in TYPES) for row in ROWS], schema)
    columns = {name: f.col(name) for name in TYPES}
    computed = frame.select(*(lower(one, columns).alias(f"c{nth}") for nth, (_, one) in enumerate(expressions)))
    for row, found in zip(ROWS, computed.collect(), strict=True):
        given = [row.get(name) for name in TYPES]
        for nth, (name, expression) in enumerate(expressions):
            wanted = compile_expression(expression, tuple(TYPES))(*given)
            assert _same(_plain(found[nth]), wanted), f"{name} of {row}: Spark {found[nth]!r}, Python {wanted!r}"


def _plain(value: Any) -> Any:
    return value.asDict(recursive=True) if hasattr(value, "asDict") else value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-15)
    return type(one) is type(other) and one == other


@pytest.mark.parametrize(
    "expression",
    [
        call("ROUND", R, literal(1)),
        call("=", T, N),
        call("//", R, S),
        Cast(Primitive.BIGINT, T),
        Cast(Primitive.STRING, R),
        FieldOf(None, P, "height"),
        FieldOf(None, Column(None, "person"), "name"),
    ],
    ids=str,
)
def test_what_spark_would_compute_otherwise_is_refused(spark: SparkSession, expression: Expression) -> None:
    from pyspark.sql import functions as f

    with pytest.raises(NotNativeError):
        lower(expression, {name: f.col(name) for name in TYPES})


SERDES = [
    (StringSerde(), Primitive.STRING, ["", "a", "Grüße 🙂"], [b"\xff", b"a\xc3"]),
    (LongSerde(), Primitive.BIGINT, [0, 1, -1, 2**63 - 1, -(2**63)], [b"", b"1234567", b"123456789"]),
    (IntegerSerde(), Primitive.INTEGER, [0, 1, -1, 2**31 - 1, -(2**31)], [b"12345678"]),
    (ShortSerde(), None, [0, 1, -1, 2**15 - 1, -(2**15)], [b"1"]),
    (
        JsonSerde(Struct((("n", Primitive.BIGINT), ("t", Primitive.STRING)))),
        Struct((("n", Primitive.BIGINT), ("t", Primitive.STRING))),
        [{"n": 1, "t": 'a "b" \\ ü'}, {"n": None, "t": None}],
        [b"{", b"nonsense", b""],
    ),
]


@pytest.mark.parametrize(("serde", "data_type", "values", "broken"), SERDES, ids=lambda one: type(one).__name__)
def test_serdes_read_and_write_the_same_bytes(
    spark: SparkSession, serde: Any, data_type: Any, values: list[Any], broken: list[bytes]
) -> None:
    from pyspark.sql import functions as f

    written = [serde.serialize("t", value) for value in values]
    frame = spark.createDataFrame([(data,) for data in [*written, None, *broken]], "data binary")
    columns = [
        decoded_column(serde, f.col("data")).alias("value"),
        is_readable(serde, f.col("data")).alias("is_readable"),
    ]
    if data_type is not None:
        columns.append(encoded_column(serde, decoded_column(serde, f.col("data")), data_type).alias("again"))
    rows = frame.select(*columns).collect()
    good = rows[: len(values)]
    assert [_plain(row.value) for row in good] == values
    assert data_type is None or [bytes(row.again) for row in good] == written
    assert [row.is_readable for row in rows] == [True] * (len(values) + 1) + [False] * len(broken)
