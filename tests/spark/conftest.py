"""One Spark session for all tests here. They need Java and the connector's jars, and are skipped without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from moldau.core.errors import MoldauError
from moldau.pipeline.spark.driver.session import close_session, open_session, session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A tuned session on two threads."""
    try:
        session = open_session(session_settings({"spark.master": "local[2]"}))
    except MoldauError as error:
        pytest.skip(f"Spark cannot run here: {error}")
    yield session
    close_session(session)
