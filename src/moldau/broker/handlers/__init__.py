"""One module per API key, `api_NN_name.py`, each with a `handle`; `broker.router` has the table of them.

Produce and Fetch are classes instead, created by `broker.data.data_plane` and called by the router directly.
"""
