"""`moldau registry`, `schema-registry-start` and `schema-registry-stop`."""
