"""One module per API key, `api_NN_name.py`, each with a `handle`. The table that finds them is `broker.router`."""
