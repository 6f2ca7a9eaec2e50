"""One module per API key, `api_NN_name.py`, each with a `handle`; the table that finds them is `broker.router`.

Produce and Fetch are classes instead, made by `broker.data.data_plane` and called by the router directly.
"""
