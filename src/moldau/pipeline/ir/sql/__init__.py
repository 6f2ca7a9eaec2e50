"""SQL in the IR: typed expressions over rows, without the statement they were written in. Start at `expressions`."""
