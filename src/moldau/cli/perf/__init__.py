"""Performance tests of producing, consuming, and end-to-end latency."""
