"""Records between JSON and bytes: embedded formats of versions 1 and 2, typed data of version 3, and their schemas."""
