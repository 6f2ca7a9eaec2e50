"""`connect-standalone`, `connect-distributed` and `moldau connect`: run Connect workers."""
