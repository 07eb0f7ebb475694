import pytest

from experiments.report.numbers import change, percent, points, quantity, seconds


def _plain(words: str) -> str:
    return words.replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-").replace("\N{EN DASH}", "none")


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "none"), (0.0, "0"), (42.71, "42.7"), (999.4, "999"), (999.6, "1 k"), (2.5e15, "2.5 P"), (3e21, "3e+03 E")],
)
def test_quantities_have_three_digits_and_a_prefix(value: float | None, words: str) -> None:
    assert _plain(quantity(value)) == words


@pytest.mark.parametrize(
    ("value", "reference", "words"),
    [
        (0.9, 1.0, "-10.0 %"),
        (1.1, 1.0, "+10.0 %"),
        (1.0, 1.0, "0.0 %"),
        (1.0 - 1e-9, 1.0, "0.0 %"),
        (None, 1.0, "none"),
        (1.0, None, "none"),
        (1.0, 0.0, "none"),
    ],
)
def test_a_change_is_relative_to_the_reference(value: float | None, reference: float | None, words: str) -> None:
    assert _plain(change(value, reference)) == words


def test_fractions_are_percent_and_differences_points() -> None:
    assert (_plain(percent(0.4167)), _plain(points(-0.042))) == ("41.7 %", "-4.2 points")


@pytest.mark.parametrize(
    ("time_s", "words"),
    [
        (None, "none"),
        (0.0, "0.000 s"),
        (12.3456, "12.346 s"),
        (0.38, "0.380 s"),
        (0.1, "0.100 s"),
        (0.0483, "48.3 ms"),
        (0.002, "2 ms"),
        (0.9996e-3, "1 ms"),
        (0.9994e-3, "999 \N{MICRO SIGN}s"),
        (48.2e-6, "48.2 \N{MICRO SIGN}s"),
        (4e-7, "0.4 \N{MICRO SIGN}s"),
        (-0.0274, "-27.4 ms"),
    ],
)
def test_short_times_keep_three_digits_and_a_missing_one_is_a_dash(time_s: float | None, words: str) -> None:
    assert _plain(seconds(time_s)) == words
