"""Tools for replicas: elections, reassignment, verification."""
