"""`python -m moldau.cli.connect.distributed`: a distributed worker, as `-daemon` starts it."""

from __future__ import annotations

import sys

from moldau.cli.connect.worker_start import connect_distributed

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(connect_distributed())
