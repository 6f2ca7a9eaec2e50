"""The jobs on Quix Streams: `python quix_app.py JOB BOOTSTRAP FOLDER`. Not a library user of moldau: it runs alone."""

import sys

from quixstreams import Application
from quixstreams.dataframe.joins.lookups import QuixConfigurationService  # noqa: F401  (fails early where too old)

WINDOW_MS = 10_000


def main(job: str, bootstrap: str, folder: str) -> None:
    app = Application(
        broker_address=bootstrap,
        consumer_group=f"quix-{job}",
        auto_offset_reset="earliest",
        state_dir=folder,
        loglevel="ERROR",
        use_changelog_topics=True,
        commit_interval=1.0,
        auto_create_topics=True,
    )
    lines = app.topic("input", key_deserializer="bytes", value_deserializer="str")
    keys = "str" if job == "word-count" else "bytes"
    output = app.topic("output", key_serializer=keys, value_serializer="str" if job in ("copy", "join") else "int")
    frame = app.dataframe(lines)
    if job == "copy":
        frame.to_topic(output)
    elif job == "count":
        frame = frame.apply(_counted, stateful=True)
        frame.to_topic(output)
    elif job == "word-count":
        frame = frame.apply(str.split, expand=True)
        text = dict.fromkeys(("key_serializer", "key_deserializer", "value_serializer", "value_deserializer"), "str")
        frame = frame.group_by(lambda word: word, name="words", **text)
        frame = frame.apply(_counted, stateful=True)
        frame.to_topic(output)
    elif job == "windowed-count":
        frame = frame.tumbling_window(WINDOW_MS, grace_ms=0).count().current()
        frame = frame.apply(lambda result: result["value"])
        frame.to_topic(output)
    elif job == "join":
        table = app.dataframe(app.topic("table", key_deserializer="bytes", value_deserializer="str"))
        frame = frame.join_asof(table, how="left", on_merge=lambda line, row: f"{line}{row}")
        frame.to_topic(output)
    app.run()


def _counted(value: object, state: object) -> int:
    total = state.get("count", 0) + 1
    state.set("count", total)
    return total


if __name__ == "__main__":
    main(*sys.argv[1:])
