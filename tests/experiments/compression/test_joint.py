"""A mix of two jobs on one link: with the controller the one that compresses leaves the other its time."""

import pytest

from experiments.compression.joint import played
from experiments.compression.joint_outcomes import JointCase, JointMix

pytestmark = pytest.mark.slow

MIX = JointMix(0, 0, ("ResNet18", "ResNet18"), (0.18, 0.17), 2.4, 0.05)


@pytest.mark.parametrize("policy", ["trainyard", "crux"])
def test_who_cannot_compress_hardly_waits(policy: str) -> None:
    play = played(JointCase(MIX, policy))
    compressing, dense = play.together
    assert dense.ratio == 1.0
    # Apart the second job waits for the first one's gradients; together both are nearly as if alone.
    assert play.apart[1].step_s > 1.2 * play.alone[1].step_s
    assert dense.step_s < 1.03 * play.alone[1].step_s
    assert compressing.step_s < 1.03 * play.alone[0].step_s
    assert play.joint < 0.92
    assert 0.02 <= compressing.ratio < play.apart[0].ratio
    # It tells, is told, and settles.
    assert 3 <= play.decisions <= 6
