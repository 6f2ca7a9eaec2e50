"""Native execution: nodes, expressions and serdes as Spark columns, without Python. Start at `lowering`."""
