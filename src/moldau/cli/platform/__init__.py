"""`moldau up` and what belongs to it: `status`, `down`, `restart`, `logs`, `destroy`. Start at `up`."""
