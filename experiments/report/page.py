"""One self-contained HTML page of comparisons: scenarios, each run under several policies."""

from collections.abc import Sequence
from pathlib import Path

from experiments.report.comparison import comparison
from experiments.report.numbers import percent
from experiments.report.style import STYLE
from experiments.report.svg import Markup, element
from experiments.scenarios.results import RunResult

Comparisons = Sequence[Sequence[RunResult]]
"""The results of each scenario, the policy to compare with first, the same policies in the same order everywhere."""


def write_report(comparisons: Comparisons, path: Path) -> None:
    """Write the page. Raises OSError, and see ``page``."""
    path.write_text(page(comparisons), encoding="utf-8")


def page(comparisons: Comparisons) -> str:
    """The whole page; an overview stands in front where there is more than one scenario.

    Raises ValueError where a scenario has no result, or is mixed with another.
    """
    articles = [comparison(results, _anchor(number)) for number, results in enumerate(comparisons)]
    if not articles:
        raise ValueError("a report needs results of a scenario at least")
    names = ", ".join(results[0].scenario for results in comparisons)
    overview = [_overview(comparisons)] if len(articles) > 1 else []
    return document(f"Trainyard: {names}", *overview, *articles)


def document(title: str, *content: Markup) -> str:
    """A page by itself, with the style of all pages, around its content."""
    head = (
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    body = element("main", *content)
    return f"<!DOCTYPE html>\n{element('html', element('head', *head), element('body', body), lang='en')}\n"


def _overview(comparisons: Comparisons) -> Markup:
    titles = ("Scenario", *(result.policy for result in comparisons[0]), "ideal", "fluid bound")
    rows = (
        element(
            "tr",
            element("td", element("a", results[0].scenario, href=f"#{_anchor(number)}")),
            *(element("td", percent(result.gpu_utilisation)) for result in results),
            element("td", percent(results[-1].ideal_gpu_utilisation)),
            element("td", percent(results[-1].fluid_bound_gpu_utilisation)),
        )
        for number, results in enumerate(comparisons)
    )
    return element(
        "section",
        element("h2", "GPU utilisation"),
        element(
            "figure",
            element(
                "table",
                element("thead", element("tr", *(element("th", title) for title in titles))),
                element("tbody", *rows),
            ),
        ),
        class_="overview",
    )


def _anchor(number: int) -> str:
    return f"scenario-{number}"
