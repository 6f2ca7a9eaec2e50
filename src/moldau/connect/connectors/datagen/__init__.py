"""Made-up records at a steady rate, for demonstrations and load. Start at `source`."""
