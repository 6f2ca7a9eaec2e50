from __future__ import annotations

from rich.console import Console

from moldau.cli.demo.story.screen import Bar, Display, Moment, Step, Summary, line, picture, summary_table

STEPS = [
    Step("SQLite table orders", "the shop", 12_345, 500, None),
    Step("topic shop_orders", "Connect", 12_300, 498.4, 210),
    Step("Parquet files", "Connect", 0, 0, None),
]
BEGINNING = Moment(1, "starting the broker", STEPS[:1], "orders per country", [])
UNDER_WAY = Moment(
    14, "orders are placed", STEPS, "orders per country", [Bar("Czechia", 900, 12_345), Bar("Italy", 300, 99)]
)


def shown(renderable: object) -> str:
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def test_at_first_the_picture_says_what_is_waited_for() -> None:
    text = shown(picture(BEGINNING))
    assert "starting the broker" in text
    assert "waiting for the first results" in text


def test_the_picture_has_counts_rates_ages_and_the_country_with_most_orders_first() -> None:
    text = shown(picture(UNDER_WAY))
    assert all(word in text for word in ("12,345", "498", "0.2 s", "123.45", "Ctrl-C"))
    czechia, italy = (next(row for row in text.splitlines() if name in row) for name in ("Czechia", "Italy"))
    assert czechia.count("━") > italy.count("━") > 0
    assert {len(row) for row in text.splitlines() if row} == {80}


def test_a_line_has_the_same_for_logs() -> None:
    assert line(UNDER_WAY) == (
        "  14 s  orders are placed: SQLite table orders 12,345  topic shop_orders 12,300  Parquet files 0"
    )


def test_without_a_terminal_a_line_comes_for_each_activity_and_now_and_then() -> None:
    console = Console(width=200, color_system=None)
    with console.capture() as captured, Display(console) as display:
        for elapsed_s in (0.0, 0.5, 1.0, 2.5):
            display.show(Moment(elapsed_s, "starting", STEPS, "", []))
        display.show(Moment(2.6, "running", STEPS, "", []))
    assert [row[:14] for row in captured.get().splitlines()] == ["   0 s  starti", "   2 s  starti", "   3 s  runnin"]


def test_the_summary_has_every_place_with_the_age_of_what_arrives_there() -> None:
    text = shown(summary_table(Summary(STEPS, 17.04, 0.91)))
    assert all(word in text for word in ("12,345", "12,300", "0.2 s", "17.0 s", "0.9 s"))
