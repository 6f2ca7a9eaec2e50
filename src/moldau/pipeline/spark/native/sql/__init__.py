"""SQL over typed rows as Spark columns, with the results of the Python evaluator. Start at `lowering`."""
