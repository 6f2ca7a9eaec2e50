"""A stream split into branches: a record goes to the first whose predicate is true. Start at `BranchedKStream`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic

from moldau.pipeline.dsl.functions import Described, function_of
from moldau.pipeline.dsl.options.given import option_of
from moldau.pipeline.dsl.options.operators import Branched
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.nodes import BranchOutput, Split
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.type_variables import K, V

if TYPE_CHECKING:
    from moldau.pipeline.dsl.kstream import KStream

__all__ = ["BranchedKStream"]


class BranchedKStream(Generic[K, V]):
    """The branches of a stream; `default_branch` or `no_default_branch` comes last and returns them by name.

    The name of a branch is the name of the split plus the branch's own name or number: `split("big-").branch(...,
    Branched.as_("orders"))` makes `big-orders`. The default branch has number 0.
    """

    def __init__(self, source: KStream[K, V], name: str | None) -> None:
        self._source = source
        graph = source.graph
        self._name = graph.names.given_or_next(name, "KSTREAM-BRANCH-")
        self._predicates = graph.branches.setdefault(self._name, [])
        self._node = graph.add(
            Split(name=self._name, origin=callers_origin(), input=source.node, predicates=(), has_default=False)
        )
        self._branches: dict[str, KStream[K, V]] = {}
        self._is_open = True

    def branch(
        self, predicate: Callable[[K, V], object] | Described, branched: Branched | None = None
    ) -> BranchedKStream[K, V]:
        """Add a branch: the records for which `predicate` (key, value) is true and all earlier predicates false."""
        self._check_open()
        function = self._source.with_types(function_of(predicate, "branch", "key", "value"))
        self._predicates.append(function)
        self._add(
            option_of(branched, Branched), index=len(self._predicates) - 1, default_name=str(len(self._predicates))
        )
        return self

    def default_branch(self, branched: Branched | None = None) -> dict[str, KStream[K, V]]:
        """Add a branch for all other records, and return the branches by name."""
        self._check_open()
        self._is_open = False
        self._source.graph.default_branches.add(self._name)
        self._add(option_of(branched, Branched), index=len(self._predicates), default_name="0")
        return self._branches

    def no_default_branch(self) -> dict[str, KStream[K, V]]:
        """Drop all other records, and return the branches by name."""
        self._check_open()
        self._is_open = False
        return self._branches

    def _check_open(self) -> None:
        if not self._is_open:
            raise TopologyError(
                f"the branches of {self._name} are complete: default_branch and no_default_branch come last",
                callers_origin(),
            )

    def _add(self, branched: Branched, *, index: int, default_name: str) -> None:
        source, graph = self._source, self._source.graph
        name = self._name + (branched.name or default_name)
        graph.names.processor(name)
        node = graph.add(BranchOutput(name=name, origin=callers_origin(), input=self._node, index=index))
        branch = source.branch_of(node)
        if branched.function is not None:
            continued = branched.function(branch)
            if continued is not None:
                self._branches[name] = continued
        elif branched.consumer is not None:
            branched.consumer(branch)
        else:
            self._branches[name] = branch
