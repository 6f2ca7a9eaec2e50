"""What the demo says at its end: whether the results are right, and what to try next. Start at `print_ending`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from sqlalchemy.engine import URL

from moldau.cli.demo.story.pipelines import FILES_FOLDER, SOURCE, TABLE_QUESTION
from moldau.cli.demo.story.platform import Platform
from moldau.cli.demo.story.program import APPLICATION, ORDERS

__all__ = ["print_ending"]


def print_ending(
    console: Console, problems: Sequence[str], kept: Platform | None, database: URL, *, has_table: bool
) -> None:
    """`kept` is the platform if it goes on running."""
    console.print()
    for problem in problems:
        console.print(f"[red]{problem}[/]", soft_wrap=True)
    if problems:
        return
    console.print("[green]Every order was counted once[/], and every amount is that of the database.\n", soft_wrap=True)
    suggestions = _for_the_curious() if kept is None else _with_the_platform(kept, database, has_table=has_table)
    width = max(len(what) for what, _ in suggestions)
    for what, command in suggestions:
        console.print(f"  [dim]{what:<{width}}[/]  {command}", soft_wrap=True, highlight=False)


def _for_the_curious() -> list[tuple[str, str]]:
    return [
        ("the same, left running to look around", "moldau demo --keep"),
        ("a platform of your own", "moldau up"),
        ("SQL over topics", "ksql"),
        ("programs to start from", "examples/streams"),
        ("connectors, and one of your own", "docs/connect.md, examples/connect"),
    ]


def _with_the_platform(kept: Platform, database: URL, *, has_table: bool) -> list[tuple[str, str]]:
    question = json.dumps({"ksql": TABLE_QUESTION})
    table = [
        ("ask the table", f"curl -s {kept.url('ksql')}/query -H 'Content-Type: application/json' -d '{question}'"),
        ("the program again", f"moldau streams run moldau.cli.demo.story.program:topology -a {APPLICATION} "
         f"-b {kept.bootstrap} -p schema.registry.url={kept.url('registry')} -p state.dir={kept.folder}/program "
         "-p processing.guarantee=exactly_once_v2"),
    ]  # fmt: skip
    order = "INSERT INTO orders (country, product, cents, placed_ms) VALUES ('Malta', 'tea', 450, 0)"
    is_file = database.get_backend_name() == "sqlite"
    address = database._replace(drivername="postgresql", password=None).render_as_string()
    shell = f"sqlite3 {database.database}" if is_file else f"psql {address} -c"
    return [
        ("what runs", f"moldau status --data {kept.folder}"),
        ("place an order", f'{shell} "{order}"'),
        *(table if has_table else []),
        ("SQL over topics", f"ksql {kept.url('ksql')}"),
        ("the orders as they come", f"moldau consume {ORDERS} -b {kept.bootstrap}"),
        ("all pipelines as a graph", f"moldau topology --data {kept.folder}"),
        ("the connector", f"curl -s {kept.url('connect')}/connectors/{SOURCE}/status"),
        ("the files", f"{kept.folder}/{FILES_FOLDER}"),
        ("stop, and delete", f"moldau down --data {kept.folder} && rm -r {kept.folder}"),
    ]
