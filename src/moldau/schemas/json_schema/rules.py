"""The compatibility rules of JSON Schema, by the registry's names, with a sentence for each.

`new` below is the reader's schema, `old` the one the data was written with. Start at `Rules.finding`.
"""

from __future__ import annotations

from typing import Final

from moldau.schemas.findings import NOTHING, Findings
from moldau.schemas.incompatibility import Incompatibility, Sides, shorten
from moldau.schemas.parsed_schema import SchemaType

__all__ = ["Rules"]

_FORGIVEN: Final = frozenset(
    {
        "ADDITIONAL_PROPERTIES_NARROWED",
        "ADDITIONAL_PROPERTIES_REMOVED",
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
    }
)
"""Rules that the lenient policy ignores: it assumes that data has no properties that the schema does not name."""

_SENTENCES: Final = {
    "ADDITIONAL_ITEMS_NARROWED": (
        "Further items at path '{path}' must fit a schema in {new}, in {old} they may be anything"
    ),
    "ADDITIONAL_ITEMS_REMOVED": "Further items at path '{path}' are forbidden in {new} and allowed in {old}",
    "ADDITIONAL_PROPERTIES_NARROWED": (
        "Further properties at path '{path}' must fit a schema in {new}, in {old} they may be anything"
    ),
    "ADDITIONAL_PROPERTIES_REMOVED": "Further properties at path '{path}' are forbidden in {new} and allowed in {old}",
    "COMBINED_TYPE_CHANGED": "The combination at path '{path}' is of another kind in {new} than in {old}",
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED": (
        "The branches of the combination at path '{path}' in {new} do not each take over one of {old}"
    ),
    "DEPENDENCY_ARRAY_ADDED": "The dependency at path '{path}' in {new} is missing in {old}",
    "DEPENDENCY_ARRAY_CHANGED": "The dependency at path '{path}' asks for other properties in {new} than in {old}",
    "DEPENDENCY_ARRAY_EXTENDED": "The dependency at path '{path}' asks for more properties in {new} than in {old}",
    "DEPENDENCY_SCHEMA_ADDED": "The dependency at path '{path}' in {new} is missing in {old}",
    "ENUM_ARRAY_CHANGED": "The values at path '{path}' in {new} are other ones than in {old}",
    "ENUM_ARRAY_NARROWED": "The values at path '{path}' in {new} are fewer than in {old}",
    "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (
        "The item at path '{path}' in {new} does not fit what {old} says about further items"
    ),
    "ITEM_ADDED_TO_OPEN_CONTENT_MODEL": (
        "The item at path '{path}' in {new} is missing in {old}, where an item there may be anything"
    ),
    "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL": (
        "The item at path '{path}' in {old} is missing in {new}, which forbids further items"
    ),
    "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (
        "The item at path '{path}' in {old} does not fit what {new} says about further items"
    ),
    "MULTIPLE_OF_CHANGED": "The value at path '{path}' in {new} is not a divisor of the one in {old}",
    "MULTIPLE_OF_EXPANDED": "The value at path '{path}' in {new} is a multiple of the one in {old}",
    "NOT_TYPE_EXTENDED": "The schema at path '{path}' forbids more in {new} than in {old}",
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (
        "The property at path '{path}' in {new} is missing in {old}, where a property of that name may be anything"
    ),
    "PATTERN_CHANGED": "The pattern at path '{path}' in {new} is another one than in {old}",
    "PRODUCT_TYPE_EXTENDED": "The schema at path '{path}' has more conditions in {new} than in {old}",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (
        "The property at path '{path}' in {new} does not fit what {old} says about properties it does not name"
    ),
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": (
        "The property at path '{path}' in {old} is missing in {new}, which forbids further properties"
    ),
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (
        "The property at path '{path}' in {old} does not fit what {new} says about properties it does not name"
    ),
    "REQUIRED_ATTRIBUTE_ADDED": (
        "The property at path '{path}' is required in {new} without a default, in {old} it is not"
    ),
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (
        "The required property at path '{path}' in {new} has no default and is missing in {old}"
    ),
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": (
        "The required property at path '{path}' in {new} has no default and is missing in {old}"
    ),
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL": (
        "The required property at path '{path}' in {new} is missing in {old}, where it may be anything"
    ),
    "SCHEMA_ADDED": "The schema at path '{path}' in {new} is missing in {old}",
    "SUM_TYPE_NARROWED": "The choice at path '{path}' has fewer branches in {new} than in {old}",
    "TYPE_CHANGED": "The type at path '{path}' is another one in {new} than in {old}",
    "TYPE_NARROWED": "The type at path '{path}' is narrower in {new} than in {old}",
    "UNIQUE_ITEMS_ADDED": "Items at path '{path}' must be unique in {new}, in {old} they need not",
}


class Rules:
    """Turns a broken rule into a finding, unless the policy ignores it."""

    def __init__(self, sides: Sides, *, is_lenient: bool) -> None:
        self._words = {"new": f"the {sides.reader} schema", "old": f"the {sides.writer} schema"}
        self._forgiven = _FORGIVEN if is_lenient else frozenset[str]()

    def finding(self, rule: str, path: str) -> Findings:
        """The finding for one broken rule; no finding if the policy ignores it."""
        if rule in self._forgiven:
            return NOTHING
        template = _SENTENCES.get(rule) or _bound_sentence(rule)
        place = shorten(path)
        sentence = template.format(path=place, **self._words)
        return Findings(Incompatibility.of(SchemaType.JSON, rule, place, sentence))


def _bound_sentence(rule: str) -> str:
    """The sentence for a rule about a bound, such as MAX_LENGTH_ADDED or MINIMUM_INCREASED."""
    if rule.endswith("_ADDED"):
        return "The keyword at path '{path}' in {new} is missing in {old}"
    more_or_less = "more" if rule.endswith("_INCREASED") else "less"
    return f"The value at path '{{path}}' is {more_or_less} in {{new}} than in {{old}}"
