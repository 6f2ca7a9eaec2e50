"""`moldau demo`: starts a broker, sends records, counts them in windows on Spark, and shows it live in the terminal.

Start at `command`.
"""
