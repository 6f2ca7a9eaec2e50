"""`moldau up`: the services of the platform as supervised processes on one machine. Start at `supervisor`."""
