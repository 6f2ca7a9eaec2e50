"""JSON Schemas, changes people make to them, and values, all drawn at random. Start at `json_schemas`."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

__all__ = ["changed_json", "json_schemas", "json_values"]

NAMES = ["a", "b", "c"]

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 6)
    | st.sampled_from([0.5, 1.5])
    | st.sampled_from(["", "x", "xy", "xyz"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)


def json_schemas(depth: int = 2) -> st.SearchStrategy[Any]:
    """A schema; the deeper, the more likely one of a few types."""
    plain = st.one_of(
        st.sampled_from([{"type": "string"}, {"type": "boolean"}, {"type": "null"}, {}, True]),
        st.builds(_limited, st.just("string"), st.sampled_from(["minLength", "maxLength"]), st.integers(0, 3)),
        st.builds(
            _limited,
            st.sampled_from(["integer", "number"]),
            st.sampled_from(["minimum", "maximum"]),
            st.integers(-2, 4),
        ),
        st.builds(_limited, st.just("integer"), st.just("multipleOf"), st.sampled_from([1, 2, 4])),
        st.lists(st.sampled_from(["x", "xy", 1, 2, None]), min_size=1, max_size=3, unique=True).map(
            lambda values: {"enum": values}
        ),
        st.lists(st.sampled_from(["string", "null", "integer", "array"]), min_size=1, max_size=3, unique=True).map(
            lambda types: {"type": types}
        ),
    )
    if depth == 0:
        return plain
    inner = json_schemas(depth - 1)
    return st.one_of(
        plain,
        st.builds(
            _object,
            st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
            st.booleans(),
            st.sets(st.sampled_from(NAMES)),
        ),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(
            lambda items, rest: {"type": "array", "items": items, "additionalItems": rest},
            st.lists(inner, min_size=1, max_size=2),
            st.booleans(),
        ),
        st.builds(lambda branches: {"anyOf": branches}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda branches: {"allOf": branches}, st.lists(inner, min_size=1, max_size=2)),
    )


def _limited(kind: str, keyword: str, limit: int) -> dict[str, Any]:
    return {"type": kind, keyword: limit}


def _object(properties: dict[str, Any], is_open: bool, required: set[str]) -> dict[str, Any]:
    """Only properties that are described can be required: the others are not compared."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": sorted(required & properties.keys()),
    }
    return schema if is_open else {**schema, "additionalProperties": False}


@st.composite
def changed_json(draw: st.DrawFn, schema: Any) -> Any:
    """The schema with one place in it loosened, tightened or replaced."""
    new = [copy.deepcopy(schema)]
    container, key = draw(st.sampled_from(_places(new)))
    target = container[key]
    match draw(st.sampled_from(["replace", "widen", "limit", "property", "choice"])):
        case "replace":
            container[key] = draw(json_schemas(1))
        case "widen" if isinstance(target, dict) and target.get("type") == "integer":
            target["type"] = "number"
        case "limit" if isinstance(target, dict):
            for keyword in ("minLength", "maxLength", "minimum", "maximum"):
                if keyword in target:
                    target[keyword] = max(0, target[keyword] + draw(st.sampled_from([-1, 1])))
        case "property" if isinstance(target, dict) and "properties" in target:
            name = draw(st.sampled_from(NAMES))
            if name in target["properties"]:
                del target["properties"][name]
                target["required"] = [other for other in target["required"] if other != name]
            else:
                target["properties"][name] = draw(json_schemas(0))
        case "choice":
            container[key] = {"anyOf": [target, draw(json_schemas(0))]}
    return new[0]


def _places(container: Any) -> list[tuple[Any, Any]]:
    """Where a schema is written, as a container and a key in it."""
    found: list[tuple[Any, Any]] = []
    for key in range(len(container)) if isinstance(container, list) else list(container):
        found.append((container, key))
        inner = container[key]
        if isinstance(inner, dict):
            for keyword in ("anyOf", "allOf", "properties"):
                found += _places(inner.get(keyword, []))
            if "items" in inner:
                found += _places(inner["items"]) if isinstance(inner["items"], list) else [(inner, "items")]
    return found
