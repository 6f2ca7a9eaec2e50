"""Rows of CSV and JSON-lines files, one file or a whole folder, each row once. Start at `source`."""
