"""The one place that maps the name of a policy to its function."""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from policies.baselines.cassini import cassini
from policies.baselines.ecmp import ecmp
from policies.baselines.fifo import fifo
from policies.baselines.sincronia import sincronia
from policies.baselines.taccl_star import taccl_star
from policies.baselines.varys import varys
from policies.crux.policy import crux, crux_pa, crux_ps_pa
from policies.echelonflow.policy import echelonflow
from policies.plan import Plan
from policies.policy_name import PolicyName
from policies.snapshot import Snapshot
from policies.trainyard.policy import trainyard
from policies.validation import check

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
