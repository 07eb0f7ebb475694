"""``trainyard advise``: where the time of a job's iteration goes, and how else the job could be divided."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from topologies.printable import printable
from trainyard.cli.answers import Answer, OutputFormat, OutputOption, Writer
from trainyard.cli.exits import refuse
from trainyard.cli.inputs import load_policies, read_model, read_scenario, read_topology
from trainyard.cli.options import AllowPolicyImportOption
from trainyard.cli.output import number_table
from workloads.combined.alternatives import VARIED
from workloads.combined_workload import CombinedWorkload
from workloads.described.catalogue import PublicModel
from workloads.described.devices import DeviceName
from workloads.scenario import Scenario

_OPTIONS_OF_KEYS = {
    "jobs[0] job, workload.device.efficiency": "--efficiency",
    "jobs[0] job, workload.device.memory_gb": "--memory-gb",
    "jobs[0] job, workload.device": "--device",
    "jobs[0] job, workload.batch": "--batch",
    "jobs[0] job, workload.": "--parallelism: ",
    "jobs[0] job, workload": "--parallelism",
    "jobs[0] job, gpus": "--gpus",
    "jobs[0] job: ": "",
}
"""How messages about the job of a model on a cluster begin, and the options that give these keys."""

# What advises takes NumPy and Numba, which bad input and --help do not wait for.
_DEFAULT_SIMULATIONS = 8

SubjectArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO|MODEL",
        help=f"Scenario file (YAML) with a job of type combined. With --topology: a file of a model, or one of "
        f"{', '.join(PublicModel)}.",
    ),
]
JobOption = Annotated[
    str | None,
    typer.Option("--job", metavar="NAME", help="Job of the scenario; needed if several have combined parallelism."),
]
TopologyOption = Annotated[
    Path | None,
    typer.Option("--topology", metavar="FILE", help="YAML file with a topology: the cluster that MODEL trains on."),
]
GpusOption = Annotated[int | None, typer.Option("--gpus", min=1, help="GPUs of the job. Default: all of the cluster.")]
BatchOption = Annotated[int | None, typer.Option("--batch", min=1, help="Samples of an iteration, of all GPUs.")]
DeviceOption = Annotated[DeviceName | None, typer.Option("--device", help="GPU. Default: that of the model's file.")]
EfficiencyOption = Annotated[
    float | None, typer.Option("--efficiency", help="Share of the GPU's peak that layers reach, such as 0.4.")
]
MemoryOption = Annotated[
    float | None, typer.Option("--memory-gb", help="Memory of a GPU in 10^9 bytes. Default: that of its data sheet.")
]
ParallelismOption = Annotated[
    str | None,
    typer.Option(
        "--parallelism",
        metavar="KEY=VALUE,...",
        help="What is asked about, by keys of the workload combined, such as tensor=8,pipeline=4. Keys that "
        "alternatives do not vary hold for these, too.",
    ),
]
KeepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="KEY",
        help=f"Alternatives have the given value of this key: {', '.join(VARIED)}. May be repeated.",
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option("--policy", metavar="POLICY", help="Policy of the simulation. Default: the scenario's, else crux."),
]
SimulateOption = Annotated[
    int,
    typer.Option(
        "--simulate", min=0, metavar="N", help="The most alternatives that are simulated; others are predicted."
    ),
]


def advise(
    subject: SubjectArgument,
    job: JobOption = None,
    topology: TopologyOption = None,
    gpus: GpusOption = None,
    batch: BatchOption = None,
    device: DeviceOption = None,
    efficiency: EfficiencyOption = None,
    memory_gb: MemoryOption = None,
    parallelism: ParallelismOption = None,
    keep: KeepOption = None,
    policy: PolicyOption = None,
    simulate: SimulateOption = _DEFAULT_SIMULATIONS,
    output: OutputOption = OutputFormat.TABLE,
    allow_policy_import: AllowPolicyImportOption = False,
) -> None:
    """Predict an iteration of a job, show where its time goes, and rank other ways to divide it."""
    of_model = {
        "--gpus": gpus, "--batch": batch, "--device": device, "--efficiency": efficiency, "--memory-gb": memory_gb,
        "--parallelism": parallelism,
    }  # fmt: skip
    if topology is None:
        if given := [name for name, value in of_model.items() if value is not None]:
            refuse(f"{given[0]}: expected --topology and a model, or a scenario file without this option")
        scenario = read_scenario(Path(subject), allow_policy_import=allow_policy_import)
    else:
        if job is not None:
            refuse("--job: expected a scenario file without --topology")
        if batch is None:
            refuse("--batch: missing; a model needs a number of samples in an iteration")
        given_device = _device(device, efficiency, memory_gb)
        scenario = _scenario_of(subject, topology, gpus, batch, given_device, _keys(parallelism))
    from trainyard.advice import checked_keys, job_to_advise

    try:
        name = job_to_advise(scenario, job)
        kept = checked_keys(keep or ())
    except ValueError as error:
        refuse(f"--{error}")
    from experiments.advice.search import advise_job
    from policies.registry import DEFAULT_POLICY

    (chosen,) = load_policies([policy or scenario.policy or DEFAULT_POLICY])
    is_given = topology is None or parallelism is not None
    try:
        advice = advise_job(scenario, name, chosen, simulations=simulate, kept=kept, is_given=is_given)
    except ValueError as error:
        refuse(f"{printable(subject)}: {error if topology is None else _by_options(str(error))}")
    document = advice.to_dict()
    rows = list(_rows(document))
    Writer(output).write(Answer(document, rows, partial(Group, *_views(document))))


def _device(name: DeviceName | None, efficiency: float | None, memory_gb: float | None) -> dict[str, Any]:
    given = {"name": name, "efficiency": efficiency, "memory_gb": memory_gb}
    if name is None and (efficiency is not None or memory_gb is not None):
        refuse("--device: missing; --efficiency and --memory-gb are those of a device")
    if name is not None and efficiency is None:
        refuse("--efficiency: missing; it decides how long everything takes")
    return {key: value for key, value in given.items() if value is not None}


def _keys(parallelism: str | None) -> dict[str, Any]:
    """Return the keys of ``--parallelism``: whole numbers, numbers and words."""
    keys: dict[str, Any] = {}
    for pair in (parallelism or "").split(",") if parallelism else ():
        key, sign, value = pair.partition("=")
        if not (key and sign and value):
            refuse(f"--parallelism: expected KEY=VALUE with commas between, got {printable(pair)!r}")
        if key in ("type", "model", "batch", "device") or key not in CombinedWorkload.model_fields:
            known = ", ".join(sorted(CombinedWorkload.model_fields.keys() - {"type", "model", "batch", "device"}))
            refuse(f"--parallelism: {printable(key)}: expected one of {known}")
        for convert in (int, float, str):
            try:
                keys[key] = convert(value)
                break
            except ValueError:
                continue
    return keys


def _scenario_of(
    name: str, topology: Path, gpus: int | None, batch: int, device: dict[str, Any], keys: dict[str, Any]
) -> Scenario:
    """Return a scenario with one job that trains a model on a cluster, or end the command."""
    from trainyard.scenarios import build_scenario
    from workloads.loading import ScenarioError

    specification = read_topology(topology)
    fabric = specification.build()
    per_host = fabric.gpus_per_host
    num_gpus = gpus or per_host * len(fabric.hosts)
    if num_gpus < per_host:
        per_host = num_gpus
    model: object = name
    if name not in list(PublicModel):
        if not Path(name).suffix and not Path(name).exists():
            refuse(f"{printable(name)}: expected a file, or one of {', '.join(PublicModel)}")
        model = read_model(Path(name)).model_dump(mode="json", exclude_unset=True)
    workload = {"type": "combined", "model": model, "batch": batch, **({"device": device} if device else {}), **keys}
    job = {"name": "job", "gpus": num_gpus, "gpus_per_host": per_host, "iterations": 1, "workload": workload}
    document = {
        "name": Path(name).stem,
        "topology": specification.model_dump(mode="json", exclude_unset=True),
        "jobs": [job],
    }
    try:
        if keys:
            return build_scenario(document)
        # Nothing is divided yet, so that the batch need not fit to so many replicas.
        build_scenario({**document, "jobs": [{**job, "workload": {**workload, "batch": num_gpus}}]})
    except ScenarioError as error:
        refuse(*map(_by_options, error.messages))
    return Scenario.model_validate(document)


def _by_options(message: str) -> str:
    """Return a message about the job that the options describe with the option's name instead of the job's key."""
    for key, option in _OPTIONS_OF_KEYS.items():
        if message.startswith(key):
            return option + message.removeprefix(key)
    return message


def _rows(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for every alternative, with its rank, 0 for the given one."""
    given = document["given"]
    for rank, alternative in enumerate(([given] if given else []) + document["alternatives"], 0 if given else 1):
        yield {"rank": rank, **{key: value for key, value in alternative.items() if key != "memory"}}


def _views(document: Mapping[str, Any]) -> Sequence[RenderableType]:
    memory_bytes = document["memory_bytes"]
    of_memory = "" if memory_bytes is None else f" of {memory_bytes / 1e9:.0f} GB"
    job = f"{document['job']}: {document['model']} on {document['gpus']} GPUs{of_memory}"
    title = f"{job}, alone under {document['policy']}"
    views: list[RenderableType] = [_times(title, document)]
    for whose in ("given", "best"):
        shares = document[f"{whose}_time"]
        if shares is not None and shares["links"]:
            views.append(_links(shares["links"], f"the {whose}"))
    views.append(_alternatives(document))
    notes = [
        f"Does not fit: {_words(each)} needs {each['memory_bytes'] / 1e9:.0f} GB."
        for each in ([document["given"]] if document["given"] and not document["given"]["fits"] else [])
        + document["too_large"]
    ]
    notes += [
        f"Not simulated: {_words(each)}: {each['reason']}."
        for each in document["alternatives"]
        if each["reason"] is not None
    ]
    slower = [each["simulated_s"] / each["predicted_s"] - 1 for each in document["alternatives"] if each["simulated_s"]]
    best_s = document["alternatives"][0]["iteration_s"]
    if slower and any(each["iteration_s"] < best_s for each in document["alternatives"]):
        longer = f"{max(slower):.1%}".replace("%", " %")
        notes.append(f"Predictions know no flows that meet: those simulated took up to {longer} longer.")
    notes.append(
        f"{document['num_ways']:,} ways compared, {document['num_predicted']:,} of them predicted."
        + ("" if document["is_complete"] else " Others that were not simulated may be faster.")
    )
    views.append(Text("\n".join(notes)))
    return views


def _times(title: str, document: Mapping[str, Any]) -> Table:
    given, best = document["given"], document["alternatives"][0]
    columns = [("Given", given, document["given_time"])] if given else []
    columns.append(("Best", best, document["best_time"]))
    table = number_table(title, "", *(name for name, _, _ in columns))
    table.add_row("parallelism", *(_words(each) for _, each, _ in columns))
    table.add_row("iteration", *(_seconds(each["iteration_s"]) for _, each, _ in columns))
    if any(shares for _, _, shares in columns):
        table.add_row("  compute", *(_seconds(shares and shares["compute_s"]) for _, _, shares in columns))
        table.add_row("  pipeline bubble", *(_seconds(shares and shares["bubble_s"]) for _, _, shares in columns))
        for dimension in ("tensor", "context", "expert", "pipeline", "data"):
            exposed = [shares and shares["exposed_s"][dimension] for _, _, shares in columns]
            if any(exposed):
                table.add_row(f"  exposed, {dimension}", *map(_seconds, exposed))
    table.add_row("memory of a GPU", *(_gigabytes(each["memory_bytes"]) for _, each, _ in columns))
    for key in ("parameters", "gradients", "optimizer", "activations"):
        table.add_row(f"  {key}", *(_gigabytes(each["memory"][f"{key}_bytes"]) for _, each, _ in columns))
    return table


def _links(links: Sequence[Mapping[str, Any]], whose: str) -> Table:
    table = number_table(f"Busiest links of {whose}", "Link", "Utilisation", "Sends", left=("Sends",))
    for link in links:
        busy = sorted(link["busy_s"].items(), key=lambda each: -each[1])
        sends = ", ".join(f"{dimension} {busy_s:.3g} s" for dimension, busy_s in busy)
        table.add_row(link["link"], f"{link['utilisation']:.1%}".replace("%", " %"), sends)
    return table


def _alternatives(document: Mapping[str, Any]) -> Table:
    given = document["given"]
    columns = ("Rank", "Parallelism", "Memory", "Predicted", "Simulated", *(["Of given"] if given else []))
    table = number_table("Alternatives", *columns, left=("Parallelism",))
    for rank, each in enumerate(document["alternatives"], 1):
        cells = [str(rank), _words(each), _gigabytes(each["memory_bytes"]), _seconds(each["predicted_s"])]
        cells.append(_seconds(each["simulated_s"]))
        if given:
            cells.append(f"{each['iteration_s'] / given['iteration_s'] - 1:+.1%}".replace("%", " %"))
        table.add_row(*cells)
    return table


def _words(alternative: Mapping[str, Any]) -> str:
    """Return the parallelism of an alternative in words: degrees that divide anything, and what is no default."""
    degrees = [
        f"{key} {alternative[key]}"
        for key in ("tensor", "context", "expert", "pipeline", "data")
        if alternative[key] > 1
    ]
    words = [" x ".join(degrees) or "one GPU", f"micro-batch {alternative['micro_batch']}"]
    if alternative["pipeline"] > 1:
        chunks = f" in {alternative['chunks']} chunks" if alternative["chunks"] > 1 else ""
        words.append(f"{alternative['schedule']}{chunks}")
        if alternative["order"] != "tp-cp-dp-pp":
            words.append(str(alternative["order"]))
    if alternative["zero"]:
        words.append(f"ZeRO-{alternative['zero']}")
    if alternative["recompute"] != "none":
        words.append(f"recompute {alternative['recompute']}")
    return ", ".join(words)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f} s"


def _gigabytes(value: float) -> str:
    return f"{value / 1e9:.1f} GB"
