"""The small program, and a switch that has been given it."""

from pathlib import Path

import pytest

from emulator.p4runtime.pipeline import Pipeline, compiled_pipeline
from emulator.p4runtime.target import Target
from tests.emulator.p4runtime.fake_switch import FakeSwitch

HERE = Path(__file__).parent


@pytest.fixture
def p4info_path() -> Path:
    return HERE / "small.p4info.txtpb"


@pytest.fixture
def device_config_path() -> Path:
    return HERE / "small.json"


@pytest.fixture
def pipeline(p4info_path: Path, device_config_path: Path) -> Pipeline:
    return compiled_pipeline(p4info_path.read_text(), device_config_path.read_bytes())


@pytest.fixture
def target(pipeline: Pipeline) -> Target:
    return Target(FakeSwitch(1), pipeline)
