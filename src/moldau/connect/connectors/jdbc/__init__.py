"""Tables of SQL databases to topics, and topics to tables, through SQLAlchemy. Start at `source` and `sink`."""
