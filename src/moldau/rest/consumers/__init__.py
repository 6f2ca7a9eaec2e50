"""Consumer instances: named readers of groups, whose clients are made at first use and go when nobody asks."""
