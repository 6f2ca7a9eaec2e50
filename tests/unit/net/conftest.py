from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.net.serving import Chosen
from tests.unit.net.tls_transport import Security, plain, tls


@pytest.fixture(params=["PLAINTEXT", "SSL"])
def security(request: pytest.FixtureRequest) -> Iterator[Security]:
    """Both ways to connect, one after the other; what `serving` starts follows it."""
    Chosen.security = tls() if request.param == "SSL" else plain()
    yield Chosen.security
    Chosen.security = plain()
