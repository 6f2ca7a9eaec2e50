"""What a cluster's workers lack: a Python, moldau, or a module of the program. Start at `worker_trouble`."""

from __future__ import annotations

import re

from moldau.core.errors import MoldauError

__all__ = ["WorkerSetupError", "worker_trouble"]

_NO_PYTHON = re.compile(r'Cannot run program "([^"]*python[^"]*)"')
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


class WorkerSetupError(MoldauError):
    """A Spark worker cannot run Python code of the pipeline."""


def worker_trouble(text: str) -> WorkerSetupError | None:
    """The failure in Spark's words, if it is one of these."""
    if (python := _NO_PYTHON.search(text)) is not None:
        return WorkerSetupError(
            f"a Spark worker has no {python.group(1)}; name the Python that has moldau there with spark.pyspark.python"
        )
    if (module := _NO_MODULE.search(text)) is None:
        return None
    name = module.group(1)
    if name.partition(".")[0] in ("moldau", "pyarrow", "pandas", "numpy"):
        return WorkerSetupError(
            f"a Spark worker's Python has no {name}; install moldau there, or name the Python that has it with "
            "spark.pyspark.python"
        )
    return WorkerSetupError(
        f"a Spark worker cannot import {name}: install it there, or import it before the start so that it is sent "
        "along, or name it in spark.submit.pyFiles"
    )
