"""Connect's JSON converter keeps shapes that it has seen: a value is treated alike, whatever came before it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moldau.connect.api import DataError
from moldau.connect.api.schemas import BOOLEAN, FLOAT64, INT8, INT64, STRING, optional, struct, with_default
from moldau.connect.converters.json import JsonConverter

SCHEMA = struct(
    {
        "small": INT8,
        "large": optional(INT64),
        "share": optional(FLOAT64),
        "flag": optional(BOOLEAN),
        "text": optional(STRING),
        "other": with_default(optional(STRING), "x"),
    }
)
CONTENT = (
    '{"type":"struct","fields":[{"field":"small","type":"int8"},{"field":"large","type":"int64","optional":true},'
    '{"field":"share","type":"double","optional":true},{"field":"flag","type":"boolean","optional":true},'
    '{"field":"text","type":"string","optional":true},'
    '{"field":"other","type":"string","optional":true,"default":"x"}]}'
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-200, 200),
    st.sampled_from((1 << 63, (1 << 63) - 1, -(1 << 63), 0.5, 1.0, float("nan"), float("inf"), "a", "é", b"b")),
)
GOOD = st.fixed_dictionaries(
    {
        "small": st.integers(-128, 127),
        "large": st.one_of(st.none(), st.integers(-(1 << 63), (1 << 63) - 1)),
        "share": st.one_of(st.none(), st.floats()),
        "flag": st.one_of(st.none(), st.booleans()),
        "text": st.one_of(st.none(), st.text(max_size=3)),
        "other": st.one_of(st.none(), st.text(max_size=3)),
    }
)
NAMES = [field.name for field in SCHEMA.fields]
ANY = st.one_of(
    GOOD,
    st.builds(lambda good, name, value: {**good, name: value}, GOOD, st.sampled_from(NAMES), SCALARS),
    st.builds(lambda good: dict(reversed(good.items())), GOOD),
    st.builds(lambda good: {name: value for name, value in good.items() if name != "text"}, GOOD),
    SCALARS,
)


def converter() -> JsonConverter:
    made = JsonConverter()
    made.configure({"schemas.enable": "false", "schema.content": CONTENT}, is_key=False)
    return made


def outcome(of: JsonConverter, value: Any) -> Any:
    try:
        written = of.from_connect("t", SCHEMA, value)
        return written, repr(of.to_connect("t", written))
    except DataError as error:
        return str(error)


@given(st.lists(ANY, min_size=1, max_size=8))
def test_a_value_is_treated_alike_whatever_came_before(values: list[Any]) -> None:
    used = converter()
    for value in values:
        assert outcome(used, value) == outcome(converter(), value)
