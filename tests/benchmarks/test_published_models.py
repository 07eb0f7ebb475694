"""The public models against the reports of their authors."""

import pytest

from benchmarks.jobs import BUDGET
from benchmarks.published_models import PUBLISHED, Published, llama_error, worst_error
from workloads.described.catalogue import PublicModel


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda each: f"{each.model} {each.what}")
def test_layers_have_what_the_report_prints(published: Published) -> None:
    assert abs(published.error) <= BUDGET


def test_every_public_model_is_compared() -> None:
    assert {each.model for each in PUBLISHED} == set(PublicModel)


def test_the_worst_error_is_that_of_the_worst_model() -> None:
    assert llama_error() == pytest.approx(0.0055, abs=1e-4)  # 3.8e25 FLOPs, printed with two digits
    assert worst_error() == max(abs(each.error) for each in PUBLISHED)
