"""The one place that maps the name of a policy to its function."""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from controller.policy.cassini import cassini
from controller.policy.crux import crux, crux_pa, crux_ps_pa
from controller.policy.echelonflow import echelonflow
from controller.policy.ecmp import ecmp
from controller.policy.fifo import fifo
from controller.policy.plan import Plan
from controller.policy.policy_name import PolicyName
from controller.policy.sincronia import sincronia
from controller.policy.snapshot import Snapshot
from controller.policy.taccl_star import taccl_star
from controller.policy.trainyard.policy import trainyard
from controller.policy.validation import check
from controller.policy.varys import varys

_POLICIES: Mapping[PolicyName, Callable[[Snapshot], Plan]] = {
    PolicyName.ECMP: ecmp,
    PolicyName.CRUX: crux,
    PolicyName.CRUX_PA: crux_pa,
    PolicyName.CRUX_PS_PA: crux_ps_pa,
    PolicyName.FIFO: fifo,
    PolicyName.VARYS: varys,
    PolicyName.SINCRONIA: sincronia,
    PolicyName.TACCL_STAR: taccl_star,
    PolicyName.CASSINI: cassini,
    PolicyName.ECHELONFLOW: echelonflow,
    PolicyName.TRAINYARD: trainyard,
}


def decide(name: PolicyName, snapshot: Snapshot) -> Plan:
    """The Plan of a policy for a Snapshot.

    Raises ValueError, naming the job or link and the field, for a Snapshot that no policy can decide on.
    """
    with _uncollected():
        check(snapshot)
        return _POLICIES[name](snapshot)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector from walking all objects of the process meanwhile: decisions make no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
