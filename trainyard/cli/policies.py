"""``trainyard policies``."""

from collections.abc import Mapping

from policies.policy_name import PolicyName

DESCRIPTIONS: Mapping[PolicyName, str] = {
    PolicyName.ECMP: "no scheduling: the fabric's hash chooses every path, all flows share one level",
    PolicyName.CRUX: "Crux: paths, priorities and levels by GPU intensity",
    PolicyName.CRUX_PA: "Crux's priorities alone: on the paths of the fabric's hash, a level a rank as far as they go",
    PolicyName.CRUX_PS_PA: "Crux's paths and priorities without its compression: a level a rank as far as they go",
    PolicyName.FIFO: "first in, first out: levels by arrival, for comparison",
    PolicyName.VARYS: "Varys: the job whose bottleneck needs least time first, levels in classes of equal size",
    PolicyName.SINCRONIA: "Sincronia: bottleneck by bottleneck, what weighs least there goes last",
    PolicyName.TACCL_STAR: "TACCL*: least loaded paths, the job with the longest way first",
    PolicyName.CASSINI: "CASSINI: no levels; iterations are shifted in time so that transfers meet least",
    PolicyName.ECHELONFLOW: "EchelonFlow: what has least to send first, a job's flows when their consumers need them",
    PolicyName.TRAINYARD: "trainyard: paths, order and levels of flow groups, by what delay costs and links charge",
}
"""What every policy does, in one line."""


def policies() -> None:
    """List the policies, one a line."""
    width = max(len(name) for name in DESCRIPTIONS)
    for name, description in DESCRIPTIONS.items():
        print(f"{name:{width}}  {description}")
