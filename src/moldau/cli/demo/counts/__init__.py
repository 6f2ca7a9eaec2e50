"""`moldau demo counts`: a broker, and visits to a shop that are counted in windows on Spark. Start at `command`."""
