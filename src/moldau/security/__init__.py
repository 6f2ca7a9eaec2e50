"""Who somebody is and how they prove it. Decisions only: no sockets, no files."""
