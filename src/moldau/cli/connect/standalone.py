"""`python -m moldau.cli.connect.standalone`: a standalone worker, as `-daemon` starts it."""

from __future__ import annotations

import sys

from moldau.cli.connect.worker_start import connect_standalone

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(connect_standalone())
