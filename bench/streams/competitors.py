"""How each competitor's program is started, and what it needs to be there. Start at `command`."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

__all__ = ["COMPETITORS", "command"]

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
COMPETITORS = {
    "kafka-streams": "Kafka Streams",
    "quix": "Quix Streams",
    "faust": "Faust",
    "pyspark": "PySpark by hand",
    "moldau": "moldau",
}


def command(competitor: str, job: str, bootstrap: str, folder: Path, *settings: str) -> list[str]:
    """The command line that runs `job` until it is ended."""
    arguments = [job, bootstrap, str(folder), *settings]
    match competitor:
        case "kafka-streams":
            quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
            return ["java", "-Xmx1g", quiet, "-cp", f"{_kafka_streams_jars()}/*",
                    str(HERE / "apps" / "KafkaStreamsApp.java"), *arguments]  # fmt: skip
        case "quix" | "faust":
            return [str(_other_python()), str(HERE / "apps" / f"{competitor}_app.py"), *arguments]
        case _:
            return [sys.executable, str(HERE / "apps" / f"{competitor}_app.py"), *arguments]


@cache
def _kafka_streams_jars() -> str:
    fetched = subprocess.run(
        [REPOSITORY / "scripts" / "fetch-kafka", "streams"], check=True, stdout=subprocess.PIPE, text=True
    )
    return fetched.stdout.strip()


@cache
def _other_python() -> Path:
    """An environment with the other Python stream processors, made on first use."""
    cache_folder = Path(os.environ.get("MOLDAU_CACHE") or Path.home() / ".cache" / "moldau")
    python = cache_folder / "streams-bench" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
    requirements = str(HERE / "requirements.txt")
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements], check=True
    )
    return python
