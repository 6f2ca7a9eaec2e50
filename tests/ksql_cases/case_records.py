"""Records of cases: fed as bytes, read back from topics, compared. Start at `compare_outputs`."""

from __future__ import annotations

from tests.ksql_cases.cases import Case
from tests.ksql_cases.world import CaseTopics

from moldau.pipeline.ksql.execution.engine import Engine
from moldau.pipeline.ksql.trial import records
from moldau.pipeline.ksql.trial.records import MismatchError, input_record, inserted, source_of
from moldau.serdes.schema_source import SchemaSource

__all__ = ["MismatchError", "compare_outputs", "input_record", "inserted", "source_of"]


def compare_outputs(case: Case, topics: CaseTopics, engine: Engine, schemas: SchemaSource) -> None:
    """Raise `MismatchError` where the records of a topic are not those that the case expects."""
    records.compare_outputs(
        case.content.get("outputs", ()),
        topics,
        engine,
        schemas,
        is_exact=str(case.properties.get("use.exact.numeric.comparison", "true")).lower() != "false",
        has_inputs=bool(case.content.get("inputs")),
    )
