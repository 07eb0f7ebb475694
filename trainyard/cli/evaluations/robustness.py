"""``trainyard evaluate robustness``."""

import json

from trainyard.cli.evaluations.shared import JsonOption, MixOption, SeedsOption, each, prepare, require_known, show
from trainyard.cli.inputs import ReportOption
from trainyard.cli.sweeping import WorkersOption


def robustness(
    mix: MixOption = None,
    seeds: SeedsOption = 3,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Wrong numbers, jitter, late decisions and few levels: what is left of utilisation under each policy."""
    from experiments.papers.robustness import MIXES, findings, json_object, measured, runs, share_of_limit

    require_known("--mix", mix, MIXES)
    prepare(report)
    shares = {}
    try:
        for run, share in each(share_of_limit, runs(dict.fromkeys(mix or MIXES), seeds), "runs", workers):
            shares[run] = share
    finally:
        cells = measured(shares)
        if as_json:
            for cell in cells:
                print(json.dumps(json_object(cell)), flush=True)
        if cells:
            show(findings(cells), as_json=as_json, report=report)
