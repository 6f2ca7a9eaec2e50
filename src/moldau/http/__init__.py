"""A small ASGI kit for every HTTP service, based on Starlette's requests and responses, served by uvicorn.

A service is a table of endpoints and a way to render its errors; docs/http-kit.md shows how to write one. Start at
`service.build_app`, or at `app.HttpApp` to read how a request is served.

    service     a whole app with health, metrics and OpenAPI        calls       the request and the answer of a handler
    endpoints   rows of the table, and how a path finds its row     streaming   answers made while they are sent
    negotiation which content types, and which of several rows      events      server-sent events
    auth        credentials and the hook for principals             sockets     WebSockets
    serving     uvicorn on a port                                   tls         listeners and certificates
"""
