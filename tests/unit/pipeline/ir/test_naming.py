from __future__ import annotations

import pytest

from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.naming import Names, checked_name


def test_one_counter_serves_processors_and_stores() -> None:
    names = Names()
    assert names.processor("KSTREAM-SOURCE-") == "KSTREAM-SOURCE-0000000000"
    assert names.store("KSTREAM-AGGREGATE-") == "KSTREAM-AGGREGATE-STATE-STORE-0000000001"
    assert names.suffixed_or_next(None, "-sink", "KSTREAM-SINK-") == "KSTREAM-SINK-0000000002"


def test_a_chosen_name_takes_a_number_all_the_same() -> None:
    names = Names()
    assert names.given_or_next("mine", "KSTREAM-FILTER-") == "mine"
    assert names.suffixed_or_next("mine", "-sink", "KSTREAM-SINK-") == "mine-sink"
    assert names.processor("KSTREAM-MAP-") == "KSTREAM-MAP-0000000002"


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ü", "x" * 250])
def test_what_cannot_be_in_a_topics_name_cannot_be_a_name(name: str) -> None:
    with pytest.raises(TopologyError, match="cannot be a name"):
        checked_name(name)
