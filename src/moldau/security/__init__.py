"""Authentication: SASL mechanisms. Pure: no sockets, no files."""
