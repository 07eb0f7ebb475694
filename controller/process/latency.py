"""Settings of the interpreter with which calls are answered quickly while threads plan.

The collector of cyclic garbage stops all threads for as long as it takes to walk the objects it looks at. A controller
with 2,000 jobs of 50 flows has two million, and a walk over all takes most of a second. They are freed by reference
counts as a rule, since they form no cycles. So the collector looks at every object three times while it is young, and
then never again.
"""

import gc
import sys
from collections.abc import Mapping

_SWITCH_INTERVAL_S = 0.0001
_COLLECTION_THRESHOLDS = (3_000, 4, 2)
"""At most about 3,000, 15,000 and 45,000 objects are looked at: the last takes some 15 ms."""
_OLDEST = 2


def tune_for_latency() -> None:
    """Have threads switch often, and bound the work of the garbage collector."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.set_threshold(*_COLLECTION_THRESHOLDS)
    if _keep_survivors not in gc.callbacks:
        gc.callbacks.append(_keep_survivors)


def _keep_survivors(phase: str, collection: Mapping[str, int]) -> None:
    """After a collection of the oldest objects, exempt those that are left from further ones."""
    if phase == "stop" and collection["generation"] == _OLDEST:
        gc.freeze()
