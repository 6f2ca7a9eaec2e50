"""Keys and values of cases; the cases' README has their rules in sections 4 and 5."""

from moldau.pipeline.ksql.trial.values import decoded, encoded, is_equal, json_text

__all__ = ["decoded", "encoded", "is_equal", "json_text"]
