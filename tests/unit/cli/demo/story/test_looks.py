from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from moldau.cli.demo.story.looks import FilesLook, Found, Watch
from moldau.cli.tool import ToolError


def sale(product: str, window: int, orders: int, newest: int) -> dict[str, Any]:
    return {"product": product, "window_start_ms": window, "orders": orders, "cents": 10 * orders, "newest_ms": newest}


def write(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), folder / name)


def test_the_last_change_of_a_window_counts_in_the_order_of_the_offsets(tmp_path: Path) -> None:
    folder = tmp_path / "partition=0"
    write(folder, "sales+0+0000000010+0000000011.parquet", sale("tea", 0, 5, 50), sale("tea", 5000, 1, 60))
    write(folder, "sales+0+0000000000+0000000009.parquet", sale("tea", 0, 2, 20), sale("maps", 0, 4, 70))
    look = FilesLook(tmp_path)

    found = look()

    assert (found.orders, found.newest_ms, found.note) == (10, 70, "2 files")
    assert found.totals == {"tea": (6, 60), "maps": (4, 40)}


def test_files_are_read_once_and_those_being_written_not_at_all(tmp_path: Path) -> None:
    write(tmp_path, "sales+0+0000000000+0000000000.parquet", sale("tea", 0, 2, 20))
    write(tmp_path / "+tmp", "4711_tmp.parquet", sale("tea", 0, 99, 99))
    look = FilesLook(tmp_path)
    assert look().orders == 2

    write(tmp_path, "sales+0+0000000001+0000000001.parquet", sale("tea", 0, 3, 30))

    assert (look().orders, look().note) == (3, "2 files")


def test_names_of_columns_may_be_those_of_sql(tmp_path: Path) -> None:
    row = {name.upper(): value for name, value in sale("tea", 0, 2, 20).items()}
    write(tmp_path, "sales+0+0000000000+0000000000.parquet", row)
    assert FilesLook(tmp_path)().totals == {"tea": (2, 20)}


def test_a_watch_keeps_what_it_found_while_the_place_is_away_and_measures_age_only_of_what_is_new() -> None:
    now = time.time_ns() // 1_000_000
    answers: list[Found | None] = [Found(3, now - 100), None, Found(3, now - 100), Found(4, now)]
    is_over = threading.Event()

    def look() -> Found:
        if not answers:
            is_over.set()
            return Found(4, now)
        answer = answers.pop(0)
        if answer is None:
            raise ToolError("away")
        return answer

    watch = Watch(look)
    watch.start()
    assert is_over.wait(10)
    watch.stop()

    assert watch.found.orders == 4
    assert watch.first_s is not None
    assert len(watch.ages_ms) == 2
    assert watch.rate() > 0
