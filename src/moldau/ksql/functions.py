"""The decorators of functions of users: what a module in the server's folder of extensions imports.

from moldau.ksql.functions import udaf, udf, udtf
"""

from __future__ import annotations

from moldau.pipeline.cores.sql.functions.user import udaf, udf, udtf

__all__ = ["udaf", "udf", "udtf"]
