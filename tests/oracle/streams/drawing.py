"""Drawing a topology from a seed: a list of operators, each a small dictionary that both sides can build.

`Draw` keeps what was drawn and what may come next: which flows are streams, tables or groupings, what their keys and
values are. It knows neither Kafka Streams nor moldau. `families` says which operators a case is about. Start at `Draw`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

__all__ = ["Draw", "Flow"]

Operator = dict[str, Any]
Drawn = TypeVar("Drawn")

NULLS_ARE_RARE = 6
"""Functions that may answer null do so for one in this many values."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A stream, a table or a grouping on the way."""

    id: str
    kind: str
    """stream, table, global, grouped, grouped table, cogrouped or windowed"""
    keys: str = "text"
    """text, or the kind of window around it: time, sliding, session, unlimited"""
    values: str = "text"
    """text or number"""
    window: Operator | None = None
    is_grouped_window: bool = False
    """Whether this table is a windowed aggregate, perhaps filtered or mapped, that may wait for its window's end."""


@dataclass
class Draw:
    """What was drawn so far; every method that draws adds an operator and returns its flow."""

    rng: random.Random
    scale: int = 1
    """Milliseconds in one unit of time."""
    operators: list[Operator] = field(default_factory=list)
    topics: dict[str, str] = field(default_factory=dict)
    """Input topics and what reads them: stream, table or global."""
    flows: list[Flow] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    needs_wall_clock: bool = False
    config: dict[str, str] = field(default_factory=dict)
    has_failures: bool = False
    """Whether functions may fail for some of their values."""
    has_windows: bool = False
    """Whether some store keeps values by time."""
    looks_at_stream_time: bool = False
    """Whether some processor does."""
    name_chance: float = 0.1
    store_chance: float = 0.35
    outputs: int = 0
    stores: int = 0

    # --- small choices -----------------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, choices: Sequence[Drawn]) -> Drawn:
        return self.rng.choice(choices)

    def time(self, *units: int) -> int:
        return self.pick(units) * self.scale

    def add(self, op: str, inputs: Sequence[Flow], result: Flow | None = None, **details: Any) -> Flow:
        """Write an operator down; `result` says what it gives, under an id that is made here."""
        identity = f"n{len(self.operators)}"
        operator: Operator = {"id": identity, "op": op}
        if inputs:
            operator["in"] = [flow.id for flow in inputs]
        self.used.update(flow.id for flow in inputs)
        operator.update({name: detail for name, detail in details.items() if detail is not None})
        self.operators.append(operator)
        self.has_windows |= op in ("windowed_by", "stream_join") or details.get("kind") in ("window", "session")
        flow = replace(result or Flow("", "none"), id=identity)
        if result is not None:
            self.flows.append(flow)
        return flow

    def name(self) -> str | None:
        return f"named-{len(self.operators)}" if self.chance(self.name_chance) else None

    def store_name(self) -> str:
        self.stores += 1
        return f"store-{self.stores}"

    def store(self, *, is_needed: bool = False) -> Operator | None:
        """How a table is kept: under a name, with serdes only, or as the DSL likes."""
        if self.chance(self.store_chance):
            return {"store": self.store_name(), "caching": self.chance(0.5), "logging": self.chance(0.8)}
        return {} if is_needed or self.chance(0.2) else None

    def choosing(self, name: str) -> Operator:
        modulus = self.pick((2, 3, NULLS_ARE_RARE))
        return {"fn": name, "mod": modulus, "rest": self.rng.randrange(modulus)}

    def failing(self) -> Operator | None:
        """A function that fails now and then, where the case is about that."""
        if self.has_failures and self.chance(0.5):
            return {"fn": "failing", "mod": 4, "rest": self.rng.randrange(4)}
        return None

    def predicate(self) -> Operator:
        if failing := self.failing():
            return failing
        name = self.pick(("digest", "key_digest", "value_digest", "has_value", "longer"))
        if name == "longer":
            return {"fn": name, "than": self.pick((1, 4, 8))}
        return {"fn": name} if name == "has_value" else self.choosing(name)

    def value_mapper(self) -> Operator:
        if failing := self.failing():
            return failing
        name = self.pick(("append", "with_key", "nullable", "keep_null", "text"))
        if name == "nullable":
            return {"fn": name, "mod": NULLS_ARE_RARE}
        return {"fn": name, "text": self.pick(("+", ",x"))} if name == "append" else {"fn": name}

    def key_selector(self, *, may_be_null: bool = True) -> Operator:
        names = ["first", "bucket", "key_bucket", "key_text", *(["nullable_bucket"] if may_be_null else [])]
        name = self.pick(names)
        return {"fn": name} if name in ("first", "key_text") else {"fn": name, "mod": self.pick((2, 3, 4))}

    def flattener(self) -> Operator:
        return {"fn": "split"} if self.chance(0.5) else {"fn": "repeat", "mod": self.pick((2, 3, 4))}

    def joiner(self, *, may_use_key: bool) -> Operator:
        if failing := self.failing():
            return failing
        name = self.pick(("pair", "pair", "nullable_pair", "pair_key"))
        if name == "pair_key" and not may_use_key:
            name = "pair"
        return {"fn": name, "mod": NULLS_ARE_RARE} if name == "nullable_pair" else {"fn": name}

    # --- sources and sinks -------------------------------------------------------------------------------------

    def source(self, kind: str = "stream", **details: Any) -> Flow:
        """A stream, a table or a global table of a topic of its own."""
        topic = f"in{len(self.topics)}"
        self.topics[topic] = kind
        details.setdefault("clock", self._clock() if kind != "global" and self.chance(0.06) else None)
        if kind == "stream":
            more = None
            if self.chance(0.1):
                more = [f"in{len(self.topics)}"]
                self.topics[more[0]] = kind
            return self.add(
                "stream", [], Flow("", "stream"), topic=topic, more_topics=more, name=self.name(), **details
            )
        operator = "table" if kind == "table" else "global_table"
        store = details.pop("as", None) or self._table_store(kind)
        if kind == "global" and not store:
            # Kafka Streams fails on a global table with serdes for its store but no name.
            store = None
        return self.add(operator, [], Flow("", kind), topic=topic, name=self.name(), **{"as": store}, **details)

    def _table_store(self, kind: str) -> Operator | None:
        return self.versioned() if kind == "table" and self.chance(0.12) else self.store()

    def versioned(self) -> Operator:
        """A table that remembers what its rows were."""
        return {"store": self.store_name(), "versioned": self.time(20, 60, 200)}

    def _clock(self) -> Operator:
        name = self.pick(("shifted", "invalid", "previous"))
        return {"fn": name, "by": self.time(1, 20)} if name == "shifted" else self.choosing(name)

    def read_back(self, flow: Flow, kind: str) -> Flow:
        """What was written to a topic, read again by the same topology."""
        topic = f"back{self.outputs}"
        self.outputs += 1
        self.add("to", [flow], topic=topic, name=self.name())
        return self.add(kind, [], Flow("", kind), topic=topic, name=self.name())

    def sink(self, flow: Flow) -> None:
        if flow.kind == "table":
            flow = self.to_stream(flow)
        if self.chance(0.05):
            choices = [f"out{self.outputs}", f"out{self.outputs + 1}"]
            self.add("to", [flow], choose=choices, name=self.name())
            self.outputs += 2
        else:
            self.add("to", [flow], topic=f"out{self.outputs}", name=self.name())
            self.outputs += 1

    def sink_all(self) -> None:
        """Every stream and table that nothing follows gets a topic, and some others do too."""
        for flow in list(self.flows):
            if flow.kind in ("stream", "table") and (flow.id not in self.used or self.chance(0.1)):
                self.sink(flow)

    # --- streams -----------------------------------------------------------------------------------------------

    def stateless(self, flow: Flow) -> Flow:
        """One operator on a stream that keeps no state."""
        keeping = ("filter", "filter_not", "map_values", "flat_map_values", "peek")
        changing = ("map", "flat_map", "select_key")
        if flow.keys != "text" and self.chance(0.2):
            return self.repartition(flow)
        op = self.pick((*keeping, *changing) if flow.keys == "text" else (*keeping, "select_key", "map"))
        return self.stateless_named(op, flow)

    def stateless_named(self, op: str, flow: Flow) -> Flow:
        texts, both_texts = replace(flow, values="text"), replace(flow, values="text", keys="text", window=None)
        match op:
            case "filter" | "filter_not":
                return self.add(op, [flow], flow, **{"with": self.predicate()}, name=self.name())
            case "map_values":
                return self.add(op, [flow], texts, **{"with": self.value_mapper()}, has_key=True, name=self.name())
            case "flat_map_values":
                return self.add(op, [flow], texts, **{"with": self.flattener()}, has_key=True, name=self.name())
            case "peek":
                return self.add(op, [flow], flow, name=self.name())
            case "map":
                key = self.key_selector()
                return self.add(op, [flow], both_texts, key=key, value=self.value_mapper(), name=self.name())
            case "flat_map":
                key = self.key_selector()
                return self.add(op, [flow], both_texts, key=key, value=self.flattener(), name=self.name())
        keyed = replace(flow, keys="text", window=None)
        return self.add("select_key", [flow], keyed, **{"with": self.key_selector()}, name=self.name())

    def merge(self, left: Flow, right: Flow) -> Flow:
        return self.add("merge", [left, right], left, name=self.name())

    def split(self, flow: Flow) -> list[Flow]:
        branches = [self.predicate() for _ in range(self.pick((1, 2, 3)))]
        if self.chance(0.2):
            for number, branch in enumerate(branches):
                branch["name"] = f"-branch-{number}"
        is_default = self.chance(0.6)
        made = self.add("split", [flow], branches=branches, default=is_default, name=self.name())
        names = [f"{made.id}.{number}" for number in range(len(branches))]
        flows = [replace(flow, id=name) for name in (*names, *([f"{made.id}.default"] if is_default else []))]
        self.flows.extend(flows)
        return flows

    def repartition(self, flow: Flow) -> Flow:
        return self.add("repartition", [flow], flow, name=self.name())

    def to_table(self, flow: Flow) -> Flow:
        store = self.store(is_needed=flow.values != "text" or flow.keys != "text")
        if flow.keys == "text" and self.chance(0.08):
            store = self.versioned()
        return self.add("to_table", [flow], replace(flow, kind="table"), **{"as": store}, name=self.name())

    # --- tables ------------------------------------------------------------------------------------------------

    def table_step(self, flow: Flow) -> Flow:
        """Filter, map or transform a table, kept in a store or not."""
        op = self.pick(("filter", "filter_not", "map_values", "map_values", "transform_values"))
        store = self.store()
        if op == "transform_values":
            return self._transform(flow, store)
        if op == "map_values":
            mapped = replace(flow, values="text")
            mapper, has_key = self.value_mapper(), self.chance(0.5)
            if mapper["fn"] == "with_key":
                has_key = True
            return self.add(op, [flow], mapped, **{"with": mapper, "as": store}, has_key=has_key, name=self.name())
        return self.add(op, [flow], flow, **{"with": self.predicate(), "as": store}, name=self.name())

    def _transform(self, flow: Flow, store: Operator | None) -> Flow:
        counters = None
        if self.chance(0.5):
            counters = [self.store_name()]
            self.add("add_store", [], store=counters[0], kind="key-value")
            # Kafka Streams gives a foreign-key join no access to the transformer's store, so it must not need to ask.
            store = store if store and "store" in store else {"store": self.store_name()}
        texts = replace(flow, values="text")
        return self.add("transform_values", [flow], texts, stores=counters, **{"as": store}, name=self.name())

    def to_stream(self, flow: Flow) -> Flow:
        if self.chance(0.2):
            keyed = replace(flow, kind="stream", keys="text", window=None, is_grouped_window=False)
            return self.add("to_stream", [flow], keyed, **{"with": self.key_selector()}, name=self.name())
        return self.add("to_stream", [flow], replace(flow, kind="stream", is_grouped_window=False), name=self.name())

    def suppress(self, flow: Flow, *, until_close: bool) -> Flow:
        if until_close:
            closed = replace(flow, is_grouped_window=False)
            return self.add("suppress", [flow], closed, name=self.name())
        limits: Operator = {}
        if self.chance(0.4):
            limits = {"max_records": self.pick((1, 2, 5))}
        elif self.chance(0.4):
            limits = {"max_bytes": self.pick((100, 200, 500))}
        if limits and self.chance(0.1):
            limits["is_strict"] = True
        after, waiting = replace(flow, is_grouped_window=False), self.time(0, 1, 5, 20)
        return self.add("suppress", [flow], after, wait=waiting, **limits, name=self.name())

    def roots(self, flow: Flow) -> frozenset[str]:
        """The sources a flow comes from."""
        by_id = {operator["id"]: operator for operator in self.operators}
        inputs = by_id[flow.id.split(".")[0]].get("in", ())
        if not inputs:
            return frozenset({flow.id})
        return frozenset().union(*(self.roots(replace(flow, id=name)) for name in inputs))

    def forgets_history(self, flow: Flow) -> bool:
        """Whether a flow is a versioned table with a step after it that has serdes of its own and no name."""
        by_id = {operator["id"]: operator for operator in self.operators}
        operator, forgets = by_id[flow.id.split(".")[0]], False
        while operator["op"] in ("filter", "filter_not", "map_values", "transform_values"):
            forgets |= operator.get("as") == {}
            operator = by_id[operator["in"][0]]
        return forgets and "versioned" in operator.get("as", {})

    def is_source(self, flow: Flow) -> bool:
        """Whether a flow is read from a topic, perhaps filtered or mapped on the way."""
        by_id = {operator["id"]: operator for operator in self.operators}
        operator = by_id[flow.id.split(".")[0]]
        while operator["op"] in ("filter", "filter_not", "map_values", "transform_values"):
            operator = by_id[operator["in"][0]]
        return "in" not in operator

    def texts(self, flow: Flow) -> Flow:
        """The same flow with values that are texts."""
        if flow.values == "text":
            return flow
        details: Operator = {"with": {"fn": "text"}, "has_key": False}
        return self.add("map_values", [flow], replace(flow, values="text"), **details)

    def some(self, made: Callable[[Flow], Flow], flow: Flow, most: int) -> Flow:
        for _ in range(self.rng.randint(0, most)):
            flow = made(flow)
        return flow
