"""Functions of users in the server's folder of extensions: read when a server or an engine starts to plan.

The modules travel inside the plans of the queries that call them (`pipeline.ir.sql.libraries`), so that executors need
no file of the server. Start at `user_functions`.
"""

from __future__ import annotations

import logging

from moldau.core.errors import StartupError
from moldau.ksql.settings import KsqlSettings
from moldau.pipeline.cores.sql.functions.libraries import load_functions
from moldau.pipeline.cores.sql.functions.registry import FunctionRegistry
from moldau.pipeline.cores.sql.functions.resolution import FunctionLookupError

__all__ = ["user_functions"]

_logger = logging.getLogger("moldau.ksql")


def user_functions(settings: KsqlSettings) -> FunctionRegistry:
    """The built-in functions and those of the server's folder; raises `StartupError` for one that does not load."""
    folder = settings.extension_folder
    if "ksql.extension.dir" in settings.given and not folder.is_dir():
        _logger.warning("ksql.extension.dir: there is no folder %s, so there are no functions of your own", folder)
    try:
        return load_functions(folder)
    except FunctionLookupError as error:
        raise StartupError(f"ksql.extension.dir={folder}: {error}") from None
