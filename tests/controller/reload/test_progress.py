"""What a reload does now, for those who ask."""

import pytest

from controller.reload.errors import ReloadError
from controller.reload.progress import ReloadProgress, ReloadStep


def test_there_is_a_step_while_a_reload_goes_on() -> None:
    now_s = [100.0]
    progress = ReloadProgress(lambda: now_s[0])
    assert progress.step is None
    with progress.going_on():
        progress.at("trying the switches")
        now_s[0] = 103.0
        assert progress.step == ReloadStep("trying the switches", 3.0)
    assert progress.step is None
    with pytest.raises(ReloadError), progress.going_on():
        raise ReloadError("no")
    assert progress.step is None
    with progress.going_on():
        assert progress.step == ReloadStep("it begins", 0.0)
