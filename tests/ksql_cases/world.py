"""The topics of a case; `case_registry` has its registry."""

from moldau.pipeline.ksql.trial.topics import MemoryRecord as CaseRecord
from moldau.pipeline.ksql.trial.topics import MemoryTopics as CaseTopics

__all__ = ["CaseRecord", "CaseTopics"]
