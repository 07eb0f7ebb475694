"""A running controller with three jobs, whose operators do things by hand."""

from collections.abc import Iterator

import pytest

from tests.controller.api.operations.builders import PlannedController, planned_controller, served


@pytest.fixture
def controller() -> PlannedController:
    return planned_controller()


@pytest.fixture
def address(controller: PlannedController) -> Iterator[str]:
    with served(controller) as address:
        yield address
