"""The endpoints, a class for each part of the API. Start at `resource.Resource`."""
