"""The small ASGI kit under every HTTP service: endpoints as a table, negotiation, errors, health, metrics, serving.

Over Starlette's requests and responses, served by uvicorn. A service is `endpoints` plus a way to word its errors.
Start at `app.HttpApp`.
"""
