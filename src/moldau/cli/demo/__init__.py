"""`moldau demo`: a broker, records that stream in, a windowed count of them on Spark, live in the terminal.

Start at `command`.
"""
