"""The schema registry under load: registering, lookups by id, known schemas again, and starting on a long topic."""
