"""`moldau demo`: the platform at work, live in the terminal. Start at `command`; by default it shows `story`."""
