"""The registry's endpoints, one class per resource. Start at `subjects`; the base class is in `resource`."""
