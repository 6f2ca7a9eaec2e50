"""For tests: a real broker and a real schema registry in the test process, and fakes of clock and disk.

Start at `Broker`. As a pytest fixture it is called `moldau_broker`.
"""

from moldau.testing.broker import Broker
from moldau.testing.clock import ManualClock
from moldau.testing.registry import SchemaRegistry

__all__ = ["Broker", "ManualClock", "SchemaRegistry"]
