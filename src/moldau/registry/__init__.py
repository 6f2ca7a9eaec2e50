"""The schema registry: schemas with ids, versions and compatibility, over HTTP and kept in the topic `_schemas`.

State is what replaying the topic gives (`state`), changes are decided purely (`decisions`) and become true when they
have been read back (`store`). Start at `app.build_app` for the outside and `registry.Registry` for the inside.
"""
