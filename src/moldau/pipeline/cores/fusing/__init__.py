"""Chains of processors compiled to one Python loop over the columns of a batch. Start at `fused`."""
