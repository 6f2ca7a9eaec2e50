from __future__ import annotations

from moldau.pipeline.cores.builders import BUILDERS
from moldau.pipeline.ir import foreign_key, row_nodes
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.spark.explain import HOSTED, NATIVE, REWRITTEN

ABSTRACT = {ir.Node, ir.Source, ir.OneInput, ir.Join}


def kinds(module: object) -> set[type[ir.Node]]:
    return {one for one in vars(module).values() if isinstance(one, type) and issubclass(one, ir.Node)} - ABSTRACT


def test_every_kind_of_node_has_exactly_one_path() -> None:
    tables = [set(NATIVE), set(HOSTED), set(REWRITTEN)]
    assert set().union(*tables) == kinds(ir) | kinds(foreign_key) | kinds(row_nodes)
    assert sum(map(len, tables)) == len(set().union(*tables))


def test_what_is_native_can_be_hosted_too() -> None:
    assert set(NATIVE) - {ir.Repartition} <= set(BUILDERS)
    assert set(HOSTED) <= set(BUILDERS)
