"""kafka-consumer-groups --validate-regex: whether the broker accepts a subscription pattern (RE2)."""

from __future__ import annotations

__all__ = ["validate_regex"]


def validate_regex(pattern: str) -> str:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        complaint = error.args[0] if error.args else ""
        text = complaint.decode(errors="replace") if isinstance(complaint, bytes) else str(complaint)
        return f"The regular expression `{pattern}` is invalid: {text}."
    return f"The regular expression `{pattern}` is valid."
