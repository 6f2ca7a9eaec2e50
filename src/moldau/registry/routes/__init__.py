"""The registry's endpoints, a module per resource. Start at `subjects`; what they share is `resources`."""
