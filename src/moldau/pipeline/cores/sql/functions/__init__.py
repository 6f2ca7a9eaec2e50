"""The functions of SQL, each with signatures, implementation and description in one place.

`registry` collects them, `builtin` is the registry of all that ksqlDB has, `user` adds those of users. Start at
`registry`.
"""
