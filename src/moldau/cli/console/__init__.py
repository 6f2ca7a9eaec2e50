"""The console tools: `producer` sends lines as records, `consumer` prints records as lines."""
