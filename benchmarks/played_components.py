"""Components of jobs under many plans: jobs that share no link are played apart, and none is played twice.

Plans differ little from each other in a search, and many are equal: on links that are alike, or in their order.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from experiments.scenarios.modelled import ModelledScenario
from policies.arrays import FloatArray, IntArray
from policies.model.playing_jobs import PlayingJobs
from policies.model.routed_flows import RoutedFlows
from topologies.fabric import Path
from workloads.measures import Window

_MOST_PLAYING = 16
_MOST_ROUTED = 4_096


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """Jobs on paths, by number, that share links directly or through each other; ``groups`` are their flow groups.

    Two that play alike are the same object.
    """

    jobs: tuple[int, ...]
    groups: IntArray
    routed: RoutedFlows

    def order(self, levels: IntArray, orders: IntArray) -> IntArray:
        """Return by bundle its place in the order of service, 0 first; groups have these levels and orders at hosts.

        All that the levels of a component do is in here.
        """
        tiers = self.routed.bundles(levels[self.groups], orders[self.groups]).tiers
        return np.unique(tiers, return_inverse=True)[1].astype(np.int64)


class PlayedComponents:
    """Splits the jobs of a scenario by paths, and plays the parts: to an early moment of a window, or to its end."""

    def __init__(self, modelled: ModelledScenario, window: Window, early: float = 0.25) -> None:
        """Play in a window, of which the part ``early`` is its beginning."""
        self._modelled = modelled
        self._window = window
        self.early_window = Window(window.from_s, window.from_s + early * window.length_s)
        self._flows = [job.flows for job in modelled.played]
        first_group = np.cumsum([0, *(len(job.flow_groups) for job in modelled.played)])
        self._groups = [np.arange(*ends) for ends in pairwise(first_group.tolist())]
        self._links: dict[tuple[int, tuple[Path, ...]], frozenset[int]] = {}
        self._routed: OrderedDict[tuple[tuple[int, tuple[Path, ...]], ...], Component] = OrderedDict()
        self._distinct: dict[tuple[bytes, ...], Component] = {}
        self._playing: OrderedDict[Component, tuple[PlayingJobs, bytes]] = OrderedDict()
        self._early: dict[tuple[Component, bytes], FloatArray] = {}
        self._whole: dict[tuple[Component, bytes], FloatArray] = {}

    def split(self, paths: Sequence[Sequence[Path]]) -> list[Component]:
        """Return the components of jobs whose flows are on these paths, by job."""
        parts: list[tuple[list[int], frozenset[int]]] = []
        of_jobs = [(job, tuple(of_job)) for job, of_job in enumerate(paths)]
        for job, of_job in of_jobs:
            members, links = [job], self._links_of(job, of_job)
            apart = []
            for other in parts:
                if links.isdisjoint(other[1]):
                    apart.append(other)
                else:
                    members, links = other[0] + members, links | other[1]
            parts = [*apart, (members, links)]
        return [self._component(tuple(of_jobs[job] for job in sorted(members))) for members, _ in parts]

    def alone(self, job: int, paths: Sequence[Path]) -> Component:
        """Return a job on these paths, apart from all others."""
        return self._component(((job, tuple(paths)),))

    def early(self, component: Component, order: IntArray) -> FloatArray:
        """Return by job of a component its iterations in the beginning of the window."""
        key = component, order.tobytes()
        if key not in self._early:
            playing = self._restarted(component, order)
            playing.run(self.early_window.to_s)
            self._playing[component] = playing, key[1]
            self._early[key] = playing.iterations_between(self.early_window.from_s, self.early_window.to_s)
        return self._early[key]

    def whole(self, component: Component, order: IntArray) -> FloatArray:
        """Return by job of a component its iterations in the window."""
        key = component, order.tobytes()
        if key not in self._whole:
            playing, is_at = self._playing.get(component, (None, b""))
            if playing is None or is_at != key[1]:
                playing = self._restarted(component, order)
            playing.run(self._window.to_s)
            self._playing[component] = playing, b""
            self._whole[key] = playing.iterations_between(self._window.from_s, self._window.to_s)
        return self._whole[key]

    def _links_of(self, job: int, paths: tuple[Path, ...]) -> frozenset[int]:
        key = job, paths
        if key not in self._links:
            sending = [(flow, path) for flow, path in zip(self._flows[job], paths, strict=True) if flow.sends]
            self._links[key] = frozenset(link for flow, path in sending for link in (*path, *flow.host_links))
        return self._links[key]

    def _component(self, jobs: tuple[tuple[int, tuple[Path, ...]], ...]) -> Component:
        if jobs in self._routed:
            self._routed.move_to_end(jobs)
            return self._routed[jobs]
        numbers = tuple(job for job, _ in jobs)
        routed = self._modelled.routed(numbers, [paths for _, paths in jobs])
        arrays = (
            *(np.array(numbers), routed.num_bundles, routed.size_bytes, routed.weights, routed.class_of),
            *(routed.first_links, routed.latency_ps),
            *(routed.network.capacities_bps, routed.network.starts, routed.network.links),
        )
        component = Component(numbers, np.concatenate([self._groups[job] for job in numbers]), routed)
        component = self._distinct.setdefault(tuple(array.tobytes() for array in arrays), component)
        self._routed[jobs] = component
        if len(self._routed) > _MOST_ROUTED:
            self._routed.popitem(last=False)
        return component

    def _restarted(self, component: Component, order: IntArray) -> PlayingJobs:
        """Return the jobs of a component at time 0; whoever plays them says in ``_playing`` how far they are."""
        if component in self._playing:
            playing, _ = self._playing.pop(component)
            playing.restart(component.routed.ordered(order))
        else:
            if len(self._playing) == _MOST_PLAYING:
                self._playing.popitem(last=False)
            playing = self._modelled.starting(component.jobs, component.routed, component.routed.ordered(order))
        return playing
