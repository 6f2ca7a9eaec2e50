"""The HTTP side of a ksql server: endpoints, requests, answers and their documents. Start at `app`."""
