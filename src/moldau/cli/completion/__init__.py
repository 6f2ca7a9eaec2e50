"""The Tab key: what may follow the words typed so far."""
