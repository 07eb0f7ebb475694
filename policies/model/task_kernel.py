"""The compiled loop of ``playing_jobs``: jobs play their task graphs on shared links, from event to event."""

from policies.jit import compiled
from policies.model.arrays import Layout, Scratch, Sending
from policies.model.contention import join_links, leave_links
from policies.model.picoseconds import NEVER_PS
from policies.model.rate_cache import EMPTY, RateCache, find_slot, key_of, remember
from policies.model.task_table import SENDS, Progress, TaskTable
from policies.model.transmission import reached_bundles, sent_bytes, set_rates, shared_rates_bps
from policies.rates.network import IntArray

_TURNS_PER_ITERATION = 131
_STEPS_PER_EVENT = 2
"""An event takes as long as it takes to compute so many rates."""


@compiled
def play(
    tasks: TaskTable,
    progress: Progress,
    layout: Layout,
    sending: Sending,
    scratch: Scratch,
    cache: RateCache,
    now_ps: int,
    until_ps: int,
    ended_ps: IntArray,
) -> int:
    """Play until ``until_ps``, or until nothing can happen any more; return the time reached.

    Writes the ends of each job's first iterations to ``ended_ps[job]``.
    """
    remaining_bytes, rates_bps, ends_ps = sending.remaining_bytes, sending.rates_bps, sending.ends_ps
    settled_ps, active, touched, drawn = sending.settled_ps, sending.active, scratch.touched, cache.drawn
    touched[: sending.counts[1]] = active[: sending.counts[1]]
    while True:
        num_active, num_touched = sending.counts
        # As in simulator.iteration_kernel. One function for both makes that loop take 1.65 times as long: a call counts
        # every reference to an array.
        if num_touched:
            key, touched_key = key_of(drawn, active[:num_active]), key_of(drawn, touched[:num_touched])
            slot = find_slot(cache.keys, cache.begins, key, touched_key)
            if cache.begins[slot] == EMPTY:
                flows = reached_bundles(layout, scratch, num_touched)
                progress.counts[1] += len(flows)
                slot = remember(cache, key, touched_key, flows, shared_rates_bps(layout, scratch, flows))
            begin, end = cache.begins[slot], cache.begins[slot] + cache.lengths[slot]
            flows = cache.flows[begin:end]
            for flow in flows:
                if now_ps > settled_ps[flow]:
                    remaining_bytes[flow] -= sent_bytes(
                        remaining_bytes[flow], rates_bps[flow], now_ps - settled_ps[flow]
                    )
                    settled_ps[flow] = now_ps
            set_rates(flows, cache.rates_bps[begin:end], now_ps, remaining_bytes, rates_bps, ends_ps)
            sending.counts[1] = 0
        progress.counts[1] += _STEPS_PER_EVENT
        next_ps = _next_ps(progress, active[:num_active], ends_ps)
        if next_ps > until_ps or next_ps == NEVER_PS:
            return max(now_ps, until_ps) if until_ps < NEVER_PS else now_ps
        now_ps = next_ps
        _end_bundles(progress, layout, sending, scratch, now_ps)
        for job in range(len(progress.begins_ps)):
            if progress.begins_ps[job] <= now_ps:
                progress.begins_ps[job] = NEVER_PS
                _begin_iteration(tasks, progress, layout, sending, scratch, job, now_ps)
        index = 0
        while index < progress.counts[0]:
            task = progress.running[index]
            if progress.ends_ps[task] > now_ps:
                index += 1
            else:
                progress.counts[0] -= 1
                progress.running[index] = progress.running[progress.counts[0]]
                _end_task(tasks, progress, layout, sending, scratch, task, now_ps, ended_ps)


@compiled
def _next_ps(progress: Progress, active: IntArray, ends_ps: IntArray) -> int:
    """Return when the next thing happens."""
    next_ps = NEVER_PS
    for index in range(progress.counts[0]):
        next_ps = min(next_ps, progress.ends_ps[progress.running[index]])
    for bundle in active:
        next_ps = min(next_ps, ends_ps[bundle])
    for job in range(len(progress.begins_ps)):
        next_ps = min(next_ps, progress.begins_ps[job])
    return next_ps


@compiled
def _end_bundles(progress: Progress, layout: Layout, sending: Sending, scratch: Scratch, now_ps: int) -> None:
    """End the bundles that are sent; a transfer has arrived once the last of its bundles has."""
    num_left = num_touched = 0
    for index in range(sending.counts[0]):
        bundle = sending.active[index]
        if sending.ends_ps[bundle] > now_ps:
            sending.active[num_left] = bundle
            num_left += 1
        else:
            scratch.touched[num_touched] = bundle
            num_touched += 1
            sending.remaining_bytes[bundle] = sending.rates_bps[bundle] = 0.0
            sending.ends_ps[bundle] = NEVER_PS
            task = layout.job_of[bundle]
            progress.sending[task] -= 1
            progress.latest_ps[task] = max(progress.latest_ps[task], now_ps + layout.latency_ps[bundle])
            if not progress.sending[task]:
                _will_end(progress, task, progress.latest_ps[task])
    ended = scratch.touched[:num_touched]
    leave_links(layout.first_hop, layout.links, ended, scratch.first, scratch.following, scratch.preceding)
    sending.counts[0], sending.counts[1] = num_left, num_touched


@compiled
def _begin_iteration(
    tasks: TaskTable, progress: Progress, layout: Layout, sending: Sending, scratch: Scratch, job: int, now_ps: int
) -> None:
    """Begin an iteration with the tasks that wait for nothing."""
    first, last = tasks.first_task[job], tasks.first_task[job + 1]
    progress.unfinished[job] = last - first
    for task in range(first, last):
        progress.waits_for[task] = tasks.num_before[task]
    for task in range(first, last):
        if not tasks.num_before[task]:
            _begin_task(tasks, progress, layout, sending, scratch, task, now_ps)


@compiled
def _begin_task(
    tasks: TaskTable, progress: Progress, layout: Layout, sending: Sending, scratch: Scratch, task: int, now_ps: int
) -> None:
    if tasks.duration_ps[task] != SENDS:
        duration_ps, stretch = tasks.duration_ps[task], tasks.stretch
        if len(stretch) > 1:
            turn = progress.iterations[tasks.job_of[task]] * _TURNS_PER_ITERATION + task
            duration_ps = max(1, round(duration_ps * stretch[turn % len(stretch)]))
        _will_end(progress, task, now_ps + duration_ps)
        return
    bundles = layout.bundles_of[layout.first_bundle[task] : layout.first_bundle[task + 1]]
    num_active, num_touched = sending.counts
    sending.active[num_active : num_active + len(bundles)] = bundles
    scratch.touched[num_touched : num_touched + len(bundles)] = bundles
    sending.counts[0], sending.counts[1] = num_active + len(bundles), num_touched + len(bundles)
    for bundle in bundles:
        sending.remaining_bytes[bundle], sending.settled_ps[bundle] = layout.size_bytes[bundle], now_ps
    join_links(layout.first_hop, layout.links, bundles, scratch.first, scratch.following, scratch.preceding)
    progress.sending[task], progress.latest_ps[task] = len(bundles), now_ps
    if not len(bundles):
        _will_end(progress, task, now_ps)


@compiled
def _will_end(progress: Progress, task: int, end_ps: int) -> None:
    progress.ends_ps[task] = end_ps
    progress.running[progress.counts[0]] = task
    progress.counts[0] += 1


@compiled
def _end_task(
    tasks: TaskTable,
    progress: Progress,
    layout: Layout,
    sending: Sending,
    scratch: Scratch,
    task: int,
    now_ps: int,
    ended_ps: IntArray,
) -> None:
    """End a task, and begin those that can begin now: of the next iteration, where it was the last of this one."""
    job = tasks.job_of[task]
    progress.unfinished[job] -= 1
    if not progress.unfinished[job]:
        if progress.iterations[job] < ended_ps.shape[1]:
            ended_ps[job, progress.iterations[job]] = now_ps
        progress.iterations[job] += 1
        _begin_iteration(tasks, progress, layout, sending, scratch, job, now_ps)
        return
    for entry in range(tasks.first_after[task], tasks.first_after[task + 1]):
        later = tasks.after[entry]
        progress.waits_for[later] -= 1
        if not progress.waits_for[later]:
            _begin_task(tasks, progress, layout, sending, scratch, later, now_ps)
