"""Measuring from the command line: producing, consuming, and the way there and back."""
