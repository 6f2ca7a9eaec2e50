"""Stream processors side by side on one broker: moldau's, Kafka Streams, hand-written PySpark, Quix Streams, Faust.

Start at `__main__`; what each job does is in `jobs`, and every competitor is a program under `apps` that runs one job
until it is told to stop.
"""
