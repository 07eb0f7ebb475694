"""The compiled loop of ``simulator.iterating_jobs``: jobs that compute and send, from event to event.

It calls the same functions as ``simulator.fluid`` in the same order, so both agree to the picosecond, and advances jobs
without leaving machine code. Arrays are taken out of their tuples once and calls take few of them, because machine code
counts every reference to an array.
"""

from policies.jit import compiled
from policies.model.arrays import Layout, Scratch, Sending
from policies.model.contention import join_links, leave_links
from policies.model.picoseconds import NEVER_PS
from policies.model.rate_cache import EMPTY, RateCache, find_slot, key_of, remember
from policies.model.transmission import reached_bundles, sent_bytes, set_rates, shared_rates_bps
from policies.rates.network import IntArray
from simulator.iteration_stages import (
    ARRIVES,
    DONE,
    ITERATIONS,
    LATEST,
    SENDING,
    STAGE,
    TRANSFERS,
    UNTIL,
    JobTable,
    end_iteration,
    end_sending,
    end_stage,
    next_step_ps,
)


@compiled
def advance(
    jobs: JobTable,
    layout: Layout,
    sending: Sending,
    scratch: Scratch,
    cache: RateCache,
    now_ps: int,
    until_ps: int,
    num_iterations: IntArray,
    num_to_reach: int,
    kept_ps: IntArray,
) -> tuple[int, int]:
    """Advance until ``num_to_reach`` jobs have completed their ``num_iterations``, at most until ``until_ps``.

    Writes the ends of each job's first iterations to ``kept_ps[job]``. Returns the time reached and the number of times
    at which something happened.
    """
    remaining_bytes, rates_bps, ends_ps = sending.remaining_bytes, sending.rates_bps, sending.ends_ps
    settled_ps, active, touched, drawn = sending.settled_ps, sending.active, scratch.touched, cache.drawn
    first_hop, links, job_of, latency_ps = layout.first_hop, layout.links, layout.job_of, layout.latency_ps
    num_jobs, num_events = len(jobs), 0
    for job in range(num_jobs):
        if jobs[job, ITERATIONS] >= num_iterations[job]:
            num_to_reach -= 1
    num_active, num_touched = sending.counts
    touched[:num_touched] = active[:num_touched]
    while True:
        if num_touched:
            key, touched_key = key_of(drawn, active[:num_active]), key_of(drawn, touched[:num_touched])
            slot = find_slot(cache.keys, cache.begins, key, touched_key)
            if cache.begins[slot] == EMPTY:
                flows = reached_bundles(layout, scratch, num_touched)
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
        if num_to_reach <= 0:
            break
        next_ps = next_step_ps(jobs)
        for index in range(num_active):
            next_ps = min(next_ps, ends_ps[active[index]])
        if next_ps > until_ps or next_ps == NEVER_PS:
            now_ps = max(now_ps, until_ps) if until_ps < NEVER_PS else now_ps
            break
        now_ps = next_ps
        num_events += 1
        num_left = num_touched = 0
        for index in range(num_active):
            bundle = active[index]
            if ends_ps[bundle] > now_ps:
                active[num_left] = bundle
                num_left += 1
            else:
                touched[num_touched] = bundle
                num_touched += 1
                remaining_bytes[bundle] = rates_bps[bundle] = 0.0
                ends_ps[bundle] = NEVER_PS
                end_sending(jobs, job_of[bundle], now_ps, latency_ps[bundle])
        if num_touched:
            num_active = num_left
            leave_links(first_hop, links, touched[:num_touched], scratch.first, scratch.following, scratch.preceding)
        for job in range(num_jobs):
            while jobs[job, UNTIL] <= now_ps or jobs[job, ARRIVES] <= now_ps:
                if jobs[job, ARRIVES] <= now_ps:
                    jobs[job, ARRIVES], jobs[job, TRANSFERS] = NEVER_PS, 0
                elif end_stage(jobs, job, now_ps):
                    bundles = layout.bundles_of[layout.first_bundle[job] : layout.first_bundle[job + 1]]
                    num_bundles = len(bundles)
                    active[num_active : num_active + num_bundles] = bundles
                    touched[num_touched : num_touched + num_bundles] = bundles
                    num_active, num_touched = num_active + num_bundles, num_touched + num_bundles
                    for bundle in bundles:
                        remaining_bytes[bundle], settled_ps[bundle] = layout.size_bytes[bundle], now_ps
                    join_links(first_hop, links, bundles, scratch.first, scratch.following, scratch.preceding)
                    jobs[job, TRANSFERS], jobs[job, SENDING], jobs[job, LATEST] = num_bundles > 0, num_bundles, now_ps
                if jobs[job, STAGE] == DONE and not jobs[job, TRANSFERS]:
                    if jobs[job, ITERATIONS] < kept_ps.shape[1]:
                        kept_ps[job, jobs[job, ITERATIONS]] = now_ps
                    end_iteration(jobs, job, now_ps)
                    if jobs[job, ITERATIONS] == num_iterations[job]:
                        num_to_reach -= 1
    sending.counts[0], sending.counts[1] = num_active, 0
    return now_ps, num_events
