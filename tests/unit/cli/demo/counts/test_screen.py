from __future__ import annotations

from rich.console import Console

from moldau.cli.demo.counts.screen import Moment, Summary, line, picture, summary_table

NOTHING_YET = Moment(
    elapsed_s=1, sent=10, input_per_s=10, output_per_s=0, lag=10, window_age_s=None, top=[]
)  # fmt: skip
COUNTED = Moment(
    elapsed_s=7, sent=142_000, input_per_s=20_012, output_per_s=412, lag=18_000, window_age_s=3,
    top=[("/", 12_345), ("/search", 6_123)],
)  # fmt: skip


def shown(renderable: object) -> str:
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def test_before_the_first_count_the_picture_says_what_is_waited_for() -> None:
    assert "waiting for the first counts" in shown(picture(NOTHING_YET))
    assert line(NOTHING_YET).endswith("top: no counts yet")


def test_the_picture_has_rates_lag_and_the_pages_with_the_longest_bar_first() -> None:
    text = shown(picture(COUNTED))

    assert all(number in text for number in ("20,012", "412", "18,000", "142,000"))
    search, home = (next(row for row in text.splitlines() if f" {page} " in row) for page in ("/search", "/"))
    assert home.count("━") > search.count("━") > 0


def test_a_line_has_the_same_for_logs() -> None:
    assert line(COUNTED) == "   7 s  in 20,012/s  out 412/s  lag 18,000  top: / 12,345, /search 6,123"


def test_the_summary_sets_what_was_counted_beside_what_was_sent() -> None:
    summary = Summary(
        sent=486_800, counted=486_799, changes=180, windows=6, seconds=24.3, first_output_s=5, catch_up_s=2
    )

    text = shown(summary_table(summary))

    assert "486,800" in text
    assert "486,799" in text
