import re

from experiments.report.distributions import Distribution, DistributionChart, distribution_curves


def drawn(*distributions: Distribution) -> str:
    return distribution_curves(DistributionChart("Errors", "error", distributions))


def points(markup: str) -> list[tuple[float, float]]:
    (found,) = re.findall(r'<polyline points="([^"]*)"', markup)
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in found.split())]


def test_a_curve_climbs_by_a_step_a_case_and_ends_at_the_right() -> None:
    curve = points(drawn(Distribution("crux", 0, (0.5, 0.0))))
    left, right = curve[0][0], curve[-1][0]
    bottom, top = curve[0][1], curve[-1][1]
    middle = (left + right) / 2, (bottom + top) / 2
    assert curve == [
        (left, bottom), (left, bottom), (left, middle[1]), (middle[0], middle[1]), (middle[0], top), (right, top),
    ]  # fmt: skip


def test_what_was_published_is_a_circle_on_the_same_scale() -> None:
    markup = drawn(Distribution("crux", 0, (0.25,), ((0.25, 1.0),)))
    (circle,) = re.findall(r'<circle cx="([^"]*)" cy="([^"]*)"', markup)
    assert (float(circle[0]), float(circle[1])) in points(markup)


def test_every_curve_has_its_name_and_colour_and_the_picture_tells_the_means() -> None:
    markup = drawn(Distribution("a <b>", 3, (0.1, 0.3)), Distribution("c", 4, (1.0,)))
    assert "a &lt;b&gt;" in markup
    assert markup.count("curve-3") == 2
    assert "Errors: mean error a &lt;b&gt; 20.0%, c 100.0%" in markup


def test_thousands_of_cases_are_thinned_but_for_the_last() -> None:
    values = tuple(number / 10_000 for number in range(5000))
    curve = points(drawn(Distribution("many", 0, values)))
    assert len(curve) < 1000
    assert curve[-1][1] == min(y for _, y in curve)
