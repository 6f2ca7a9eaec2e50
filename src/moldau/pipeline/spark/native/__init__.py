"""What Spark computes by itself: nodes, expressions and serdes as columns. Start at `lowering`."""
