"""NCCL's communicators ask for the job's level, where the user has not chosen. It takes no GPU."""

import logging
from types import SimpleNamespace

import pytest

from hostlib.torch.nccl import TrafficClasses


def _options() -> SimpleNamespace:
    return SimpleNamespace(config=SimpleNamespace(traffic_class=-1))


@pytest.mark.parametrize(("level", "octet"), [(0, 0), (5, 0xA0), (7, 0xE0)])
def test_communicators_get_the_class_selector_of_the_level(level: int, octet: int) -> None:
    environment: dict[str, str] = {}
    options = _options()
    TrafficClasses((2, 26, 2), environment).ask(options, level)
    assert options.config.traffic_class == octet
    assert environment == {}


def test_an_older_nccl_is_told_by_its_environment_and_again_when_the_level_changes() -> None:
    environment: dict[str, str] = {}
    options, classes = _options(), TrafficClasses((2, 25, 1), environment)
    for level, octet in ((5, "160"), (3, "96")):
        classes.ask(options, level)
        assert environment == {"NCCL_IB_TC": octet}
    assert options.config.traffic_class == -1


@pytest.mark.parametrize("name", ["NCCL_IB_TC", "NCCL_IB_SL"])
def test_what_the_user_has_set_stays_and_is_named(name: str, caplog: pytest.LogCaptureFixture) -> None:
    environment = {name: "106"}
    options = _options()
    with caplog.at_level(logging.WARNING):
        classes = TrafficClasses((2, 26, 2), environment)
    classes.ask(options, 5)
    assert options.config.traffic_class == -1
    assert environment == {name: "106"}
    assert f"{name} is set to 106" in caplog.text


def test_options_without_a_traffic_class_are_left_alone() -> None:
    options = SimpleNamespace(config=SimpleNamespace())
    TrafficClasses((2, 26, 2), {}).ask(options, 5)
    assert vars(options.config) == {}
