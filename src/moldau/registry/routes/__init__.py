"""The registry's endpoints, a class per resource. Start at `subjects`; what they share is `resource`."""
