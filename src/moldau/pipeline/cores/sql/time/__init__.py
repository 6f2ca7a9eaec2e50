"""Dates, times and zones as `java.time` reads and writes them: `calendar` has the arithmetic. Start at `patterns`."""
