"""Queryable stores: written batch by batch, read by key or window, served over HTTP. Start at `views`."""
