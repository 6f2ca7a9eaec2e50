"""A broker whose wall clock is an hour ahead, as a module to run: `python -m tests.integration.hour_ahead FILE`.

Its monotonic clock goes as everybody's does.
"""

from __future__ import annotations

import sys
import time

AHEAD_S = 3600
_time, _time_ns = time.time, time.time_ns


def main() -> int:
    time.time = lambda: _time() + AHEAD_S
    time.time_ns = lambda: _time_ns() + AHEAD_S * 10**9
    from moldau.cli.server.start import kafka_server_start

    return kafka_server_start()


if __name__ == "__main__":
    sys.exit(main())
