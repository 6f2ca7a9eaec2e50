"""The jobs on Faust: `python faust_app.py JOB BOOTSTRAP FOLDER`. Runs alone, in an environment of its own."""

import sys

import faust

WINDOW_S = 10


def build(job: str, bootstrap: str, folder: str) -> faust.App:
    app = faust.App(
        f"faust-{job}",
        broker=f"kafka://{bootstrap}",
        datadir=folder,
        store="memory://",
        topic_partitions=4,
        consumer_auto_offset_reset="earliest",
        web_enabled=False,
        stream_buffer_maxsize=65536,
        producer_linger_ms=5,
        broker_commit_interval=1.0,
        table_cleanup_interval=3600.0,
    )
    lines = app.topic("input", key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
    output = app.topic("output", key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
    JOBS[job](app, lines, output)
    return app


def copy(app: faust.App, lines: faust.TopicT, output: faust.TopicT) -> None:
    @app.agent(lines)
    async def copied(stream):
        async for key, value in stream.items():
            await output.send(key=key, value=value)


def count(app: faust.App, lines: faust.TopicT, output: faust.TopicT) -> None:
    counts = app.Table("counts", default=int, key_type=bytes, value_type=int, partitions=4)

    @app.agent(lines)
    async def counted(stream):
        async for key, _ in stream.items():
            counts[key] += 1
            await output.send(key=key, value=counts[key].to_bytes(8, "big"))


def windowed_count(app: faust.App, lines: faust.TopicT, output: faust.TopicT) -> None:
    # A windowed key is a tuple, which cannot go into the changelog as bytes.
    counts = app.Table("counts", default=int, key_type=str, value_type=int, partitions=4).tumbling(WINDOW_S)

    @app.agent(lines)
    async def counted(stream):
        async for key, _ in stream.items():
            counts[key.decode()] += 1
            await output.send(key=key, value=counts[key.decode()].current().to_bytes(8, "big"))


def word_count(app: faust.App, lines: faust.TopicT, output: faust.TopicT) -> None:
    counts = app.Table("counts", default=int, key_type=bytes, value_type=int, partitions=4)
    words = app.topic("words", key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw",
                      partitions=4, internal=True)  # fmt: skip

    @app.agent(lines)
    async def split(stream):
        async for line in stream:
            for word in line.split():
                await words.send(key=word, value=b"")

    @app.agent(words)
    async def counted(stream):
        async for key, _ in stream.items():
            counts[key] += 1
            await output.send(key=key, value=counts[key].to_bytes(8, "big"))


def join(app: faust.App, lines: faust.TopicT, output: faust.TopicT) -> None:
    rows = app.Table("rows", default=bytes, key_type=bytes, value_type=bytes, partitions=4)
    table = app.topic("table", key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

    @app.agent(table)
    async def loaded(stream):
        async for key, value in stream.items():
            rows[key] = value.decode()

    @app.agent(lines)
    async def joined(stream):
        async for key, value in stream.items():
            await output.send(key=key, value=value + rows[key].encode() if key in rows else value)


JOBS = {"copy": copy, "count": count, "windowed-count": windowed_count, "word-count": word_count, "join": join}

if __name__ == "__main__":
    application = build(*sys.argv[1:])
    sys.argv = ["faust", "worker", "-l", "error"]
    application.main()
