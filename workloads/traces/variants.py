"""Variants of a trace's assumptions, each with one change, for sensitivity studies."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from workloads.models import MODELS
from workloads.traces.assumptions import AssumedModel, Assumptions, OtherModel


class Variant(StrEnum):
    """The change from the assumptions."""

    AS_ASSUMED = "as assumed"
    HALF_VOLUMES = "volumes x0.5"
    DOUBLE_VOLUMES = "volumes x2"
    HALF_COMPUTE = "compute times x0.5"
    DOUBLE_COMPUTE = "compute times x2"
    EARLY_SENDING = "sending from the start"
    LATE_SENDING = "sending at the end"
    HALF_RATES = "link rates x0.5"
    DOUBLE_RATES = "link rates x2"
    HALF_UPLINKS = "uplinks x0.5"
    QUARTER_UPLINKS = "uplinks x0.25"
    ONE_HOST_PER_TOR = "1 host per ToR"
    FOUR_HOSTS_PER_TOR = "4 hosts per ToR"
    OTHERS_RESNET = "other labels: resnet"
    OTHERS_BERT = "other labels: bert"
    OTHERS_GPT = "other labels: gpt"


_VOLUMES = {Variant.HALF_VOLUMES: 0.5, Variant.DOUBLE_VOLUMES: 2.0}
_COMPUTE = {Variant.HALF_COMPUTE: 0.5, Variant.DOUBLE_COMPUTE: 2.0}
_SENDING = {Variant.EARLY_SENDING: 0.0, Variant.LATE_SENDING: 1.0}
_RATES = {Variant.HALF_RATES: 0.5, Variant.DOUBLE_RATES: 2.0}
_UPLINKS = {Variant.HALF_UPLINKS: 0.5, Variant.QUARTER_UPLINKS: 0.25}
_HOSTS = {Variant.ONE_HOST_PER_TOR: 1, Variant.FOUR_HOSTS_PER_TOR: 4}
_OTHERS = {Variant.OTHERS_RESNET: "resnet", Variant.OTHERS_BERT: "bert", Variant.OTHERS_GPT: "gpt"}
_UPLINK_KEYS = ("uplink_gbps", "core_link_gbps", "bottleneck_gbps")


def variants_of(assumptions: Assumptions) -> Iterator[Variant]:
    """Yield the variants that suit the topology: hosts per ToR need a Clos, and a star has no uplinks."""
    keys = type(assumptions.topology).model_fields
    for variant in Variant:
        if variant in _HOSTS and "hosts_per_tor" not in keys:
            continue
        if variant in _UPLINKS and not any(key in keys for key in _UPLINK_KEYS):
            continue
        yield variant


def varied(assumptions: Assumptions, variant: Variant) -> Assumptions:
    """Return the assumptions with one change. The number of hosts stays the same or grows by a few.

    Raises ValueError for a topology that the change does not suit.
    """
    document = assumptions.model_dump(exclude_unset=True)
    if variant in _VOLUMES | _COMPUTE | _SENDING:
        document["models"] = _models(assumptions, variant)
    elif variant in _RATES:
        document["topology"] = _with_rates(document["topology"], _RATES[variant])
    elif variant in _UPLINKS:
        uplinks = {key: document["topology"][key] for key in _UPLINK_KEYS if key in document["topology"]}
        document["topology"] |= {key: gbps * _UPLINKS[variant] for key, gbps in uplinks.items()}
    elif variant in _HOSTS:
        topology = document["topology"]
        num_hosts = topology["tors"] * topology["hosts_per_tor"]
        topology |= {"tors": -(-num_hosts // _HOSTS[variant]), "hosts_per_tor": _HOSTS[variant]}
    elif variant in _OTHERS:
        document["others"] = [OtherModel(model=_OTHERS[variant])]
    return Assumptions.model_validate(document)


def _models(assumptions: Assumptions, variant: Variant) -> dict[str, AssumedModel]:
    """Return every model with changed numbers, those of the model table included."""
    table = {
        str(name): AssumedModel(
            compute_s=model.compute_s,
            comm_start=model.comm_start,
            gradient_bytes=model.gradient_bytes,
            flows_per_pair=model.flows_per_pair,
        )
        for name, model in MODELS.items()
    }
    return {
        name: AssumedModel(
            compute_s=model.compute_s * _COMPUTE.get(variant, 1.0),
            comm_start=_SENDING.get(variant, model.comm_start),
            gradient_bytes=model.gradient_bytes * _VOLUMES.get(variant, 1.0),
            flows_per_pair=model.flows_per_pair,
        )
        for name, model in (table | dict(assumptions.models)).items()
    }


def _with_rates(keys: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """Scale every rate, including those inside hosts and of listed links."""
    found = dict(keys)
    for key, value in keys.items():
        if key.endswith("gbps"):
            found[key] = value * factor
        elif isinstance(value, Mapping):
            found[key] = _with_rates(value, factor)
        elif key == "links":
            found[key] = [_with_rates(link, factor) for link in value]
    return found
