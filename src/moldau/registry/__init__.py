"""The schema registry: schemas with ids, versions and compatibility, over HTTP and stored in the topic `_schemas`.

The state is built by replaying the topic (`state`). Changes are decided by pure functions (`decisions`) and take effect
when their records have been read back (`store`). Start at `app.build_app` (HTTP) and `registry.Registry` (internals).
"""
