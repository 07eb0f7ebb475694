"""The ways to send gradients that are compared: the product's modes, and those that others have published."""

from collections.abc import Callable
from dataclasses import dataclass

from experiments.compression.sending import StepPlan
from hostlib.compression.choice import Choice, Collective, Precision, low_rank
from hostlib.compression.codecs.payload import Form
from hostlib.compression.controllers import MODES

PlanAt = Callable[[int, int, int], StepPlan]
"""A plan from the step, the number of steps, and the number of buckets."""

_DGC_WARM_UP = (0.25, 0.0625, 0.015625, 0.004)
DGC_RATIO = 0.001
_DGC_WARM_UP_SHARE = 4 / 90
"""Four epochs of the ninety that ImageNet takes (Lin et al. 2018, section 3.3 and table 3)."""
_POWER_SGD_STARTS = {"2": lambda _steps: 2, "10 %": lambda steps: steps // 10}


@dataclass(frozen=True, slots=True)
class Method:
    """A way to send gradients.

    Attributes:
        name: In tables.
        plan_at: What a step sends; None: the controller of the product's mode of this name says.
        corrects_momentum: Whether ranks accumulate momentum before they choose what to send (Lin et al. 2018); if not,
            the optimizer accumulates that of the mean.
        form: Of the indices of sparse payloads; None: that of the device.
    """

    name: str
    plan_at: PlanAt | None = None
    corrects_momentum: bool = False
    form: Form | None = None


def _alike(choice: Choice) -> PlanAt:
    return lambda _step, _steps, buckets: (choice,) * buckets


def _power_sgd(rank: int, start: Callable[[int], int]) -> PlanAt:
    return lambda step, steps, buckets: (DENSE if step < start(steps) else low_rank(rank),) * buckets


def _dgc(step: int, steps: int, buckets: int) -> StepPlan:
    phase = int(step * len(_DGC_WARM_UP) / (_DGC_WARM_UP_SHARE * steps))
    ratio = _DGC_WARM_UP[phase] if phase < len(_DGC_WARM_UP) else DGC_RATIO
    return (Choice(ratio, Precision.FP32, Collective.ALL_GATHER),) * buckets


DENSE = Choice(1, Precision.FP32, Collective.ALL_REDUCE)
FIXED_RATIOS = (0.1, 0.01, 0.001)
"""Of the fixed configurations that hindsight may choose, beside the baselines."""

PAPER_BASELINES = (
    Method("AllReduce", _alike(DENSE)),
    Method("TopK-0.1", _alike(Choice(0.1, Precision.FP32, Collective.ALL_GATHER)), form=Form.PLAIN),
)
BASELINES = (
    *PAPER_BASELINES,
    Method("fp16", _alike(Choice(1, Precision.FP16, Collective.ALL_REDUCE))),
    *(
        Method(f"PowerSGD-{rank} from {name}", _power_sgd(rank, start))
        for rank in (1, 2, 4)
        for name, start in _POWER_SGD_STARTS.items()
    ),
    Method("DGC", _dgc, corrects_momentum=True, form=Form.PLAIN),
)
FIXED = tuple(
    Method(f"fixed {ratio:g}", _alike(Choice(ratio, Precision.FP16, Collective.REDUCE_SCATTER)))
    for ratio in FIXED_RATIOS
)
ADAPTIVE = tuple(map(Method, MODES))
METHODS = {method.name: method for method in (*BASELINES, *FIXED, *ADAPTIVE)}
