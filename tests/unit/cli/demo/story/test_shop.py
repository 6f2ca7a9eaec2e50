from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from moldau.cli.demo.story.shop import Shop
from moldau.cli.tool import ToolError


def shop_in(folder: Path, rate: int = 100, url: str | None = None) -> Shop:
    return Shop(url, folder, rate)


def test_orders_come_until_it_stops_and_the_totals_are_those_of_the_table(tmp_path: Path) -> None:
    shop = shop_in(tmp_path, rate=2000)
    shop.make()
    before = shop.inserted
    shop.start()
    deadline = time.monotonic() + 30
    while shop.inserted < before + 200 and time.monotonic() < deadline:
        time.sleep(0.01)
    shop.stop()

    with sqlite3.connect(tmp_path / "shop.db") as database:
        count, cents = database.execute("SELECT COUNT(*), SUM(cents) FROM orders").fetchone()
    assert count == shop.inserted >= before + 200
    for column in ("country", "product"):
        totals = shop.totals(column)
        assert (sum(n for n, _ in totals.values()), sum(c for _, c in totals.values())) == (count, cents)
    shop.close(drop=True)


def test_a_table_of_the_same_name_is_not_touched(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "mine.db") as database:
        database.execute("CREATE TABLE orders (id INTEGER)")
    shop = shop_in(tmp_path, url=f"sqlite:///{tmp_path}/mine.db")
    with pytest.raises(ToolError, match="has a table 'orders' already"):
        shop.make()
    shop.close(drop=True)
    with sqlite3.connect(tmp_path / "mine.db") as database:
        assert database.execute("SELECT COUNT(*) FROM orders").fetchone() == (0,)


@pytest.mark.parametrize("url", ["nonsense", "nosuchdatabase://host/x", "jdbc:oracle:thin:@host"])
def test_a_url_that_is_none_is_a_message(tmp_path: Path, url: str) -> None:
    with pytest.raises(ToolError, match="--database: "):
        shop_in(tmp_path, url=url)


def test_a_database_that_is_away_is_a_message(tmp_path: Path) -> None:
    shop = shop_in(tmp_path, url="postgresql://nobody:secret@127.0.0.1:1/none")
    with pytest.raises(ToolError, match="the database cannot be used") as error:
        shop.make()
    assert "secret" not in str(error.value)
