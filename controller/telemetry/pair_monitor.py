"""Tell from the probes of one pair of NICs which links and paths lose them."""

import math
from collections.abc import Iterable, Set

from controller.telemetry.path_table import (
    ELSEWHERE,
    FORGOTTEN,
    IGNORED,
    MOVED,
    REPORTS_TO_CONFIRM,
    UNCONFIRMED,
    PathEntry,
    PathTable,
)
from controller.telemetry.probe_loss import ProbeLossTracker
from topologies.fabric import Path


class PairMonitor:
    """The path table of one pair of NICs, and the evidence of its probes about links.

    A path is silent to the pair when no probe has taken it for ``stale_after_s`` while probes took other paths.
    """

    def __init__(self, candidate_paths: Iterable[Path], stale_after_s: float) -> None:
        self.table = PathTable(candidate_paths, stale_after_s)
        self.black_holes: frozenset[Path] = frozenset()
        """Paths that lose every probe of this pair, though none of their links is silent."""
        self._stale_after_s = stale_after_s
        self._loss = ProbeLossTracker()
        self._black_since_s: dict[Path, float] = {}
        self._heard_s = self._reset_s = -math.inf
        self._none_silent_until_s = math.inf
        """No path is silent unless a probe of the pair arrives at this time or later."""

    def record_probe(self, port: int, port_sequence: int, number: int, path: Path, now_s: float) -> bool:
        """Record a probe that arrived; return whether the path of a flow's port was found or has changed.

        Args:
            port: The source port of the probe.
            port_sequence: Counts the probes of the port.
            number: Counts the probes of the pair.
            path: The path that the probe took, one of the candidates.
            now_s: When the probe arrived.
        """
        table, loss = self.table, self._loss
        outcome = table.record(port, port_sequence, path, now_s)
        if outcome is IGNORED:
            return False
        self._heard_s = now_s
        for missing in loss.record_round(port, port_sequence, number):
            if table.believed(missing) is not None:
                loss.record_missing(missing, now_s)
        if outcome is ELSEWHERE:
            loss.record_missing(port, now_s)
        elif outcome is not UNCONFIRMED:
            loss.record_arrival(port)
            if now_s + self._stale_after_s < self._none_silent_until_s:
                self._none_silent_until_s = now_s + self._stale_after_s
            if outcome is FORGOTTEN:
                loss.forget(port)
        return outcome is MOVED

    def keep_ports(self, ports: Set[int]) -> None:
        """Keep the ports of flows in the table; see PathTable."""
        for port in self.table.keep_ports(ports):
            self._loss.forget(port)

    def reroute(self, dead_links: Set[int]) -> None:
        """Adapt to a fabric that routes around these links; see PathTable."""
        for port in self.table.reroute(dead_links):
            self._loss.forget(port)
        self._none_silent_until_s = -math.inf

    def reset_loss(self, now_s: float) -> None:
        """Clear all losses, because reports were lost on their way: a missing report is no missing probe."""
        self._reset_s = now_s
        self._loss.reset()

    def suspected_links(self, now_s: float) -> Set[int]:
        """Return the links over which probes of this pair are missing and none arrive."""
        suspects = {self.table.believed(port) for port in self._loss.ports}
        if self._heard_s >= self._none_silent_until_s:
            alive = [entry for entry in self.table.paths.values() if not entry.is_dead]
            suspects.update(entry for entry in alive if self._is_silent(entry))
            self._none_silent_until_s = min((self._silent_from_s(entry) for entry in alive), default=math.inf)
        links = {link for entry in suspects if entry is not None and not entry.is_dead for link in entry.path[1:]}
        return {link for link in links if self.missing_probes(link, -math.inf, now_s)}

    def missing_probes(self, link: int, heard_s: float, now_s: float) -> int | None:
        """Count the probes of this pair that are missing over a link.

        A pair of which nothing is heard at all counts none: its sender may have stopped.

        Args:
            link: The link that is suspected.
            heard_s: When any probe of any pair last crossed the link. Earlier losses happened elsewhere, or their ports
                lead elsewhere.
            now_s: The time now.

        Returns:
            None where probes of the pair cross the link, or where hosts have not completed a round since ``heard_s``.
        """
        total, is_second_round = 0, False
        if self._heard_s + self._stale_after_s <= now_s:
            return total
        for entry in self.table.paths.values():
            if entry.is_dead or entry.seen_s is None or link not in entry.path:
                continue
            if self._is_silent(entry):
                if self._heard_s - heard_s < self._stale_after_s:
                    return None
                total, is_second_round = total + REPORTS_TO_CONFIRM, True
                continue
            routings = {port: known.routing for port, known in entry.leading()}
            losses = [self._loss.of(port) for port in routings]
            if set(routings.values()) != {self.table.routing} or any(loss.last_s <= heard_s for loss in losses):
                return None
            total += sum(loss.probes for loss in losses)
            is_second_round |= any(loss.before_s > heard_s for loss in losses)
        # By the second round every port that may have moved to the link has been probed.
        return total if is_second_round or not total else None

    def sees_working(self, link: int, now_s: float) -> bool:
        """Return whether a port of this pair leads over a link and its probes arrive."""
        return any(
            known.routing == self.table.routing and self.table.is_fresh(known, now_s) and known.seen_s > self._reset_s
            for entry in self.table.paths.values()
            if link in entry.path and not entry.is_dead
            for port, known in entry.leading()
            if port not in self._loss.ports
        )

    def sees_broken(self, link: int, silent_links: Set[int]) -> bool:
        """Return whether all paths over a link lose every probe, except those that other silent links explain."""
        crossing = [entry for entry in self.table.paths.values() if link in entry.path and entry.seen_s is not None]
        unexplained = [entry for entry in crossing if _is_unexplained(entry, silent_links)]
        if not self._loss.ports or not unexplained:
            return False
        return all(self._loses_everything(entry, silent_links) for entry in unexplained)

    def update_black_holes(self, silent_links: Set[int], has_gaps: bool) -> bool:
        """Find the paths that lose every probe of this pair without a silent link; return whether they changed.

        A path stops being a black hole once probes arrive from all ports that lead along it.

        Args:
            silent_links: Links that all pairs agree on; paths over them need no further explanation.
            has_gaps: Whether the sender's numbers have gaps. Only then has the sender really sent what is missing.
        """
        if not self._loss.ports and not self._black_since_s:
            return False
        for entry in {self.table.believed(port) for port in self._loss.ports} if has_gaps else ():
            if entry is not None and self._loses_everything(entry, silent_links):
                self._black_since_s.setdefault(entry.path, self._heard_s)
        self._black_since_s = {
            path: since_s
            for path, since_s in self._black_since_s.items()
            if not self._has_recovered(self.table.paths[path], since_s)
        }
        before, self.black_holes = self.black_holes, frozenset(self._black_since_s)
        return self.black_holes != before

    def _silent_from_s(self, entry: PathEntry) -> float:
        """Return when a path becomes silent if the pair is heard of then; never if no probe ever took it."""
        return math.inf if entry.seen_s is None else max(entry.seen_s, self._reset_s) + self._stale_after_s

    def _is_silent(self, entry: PathEntry) -> bool:
        return self._heard_s >= self._silent_from_s(entry)

    def _loses_everything(self, entry: PathEntry, silent_links: Set[int]) -> bool:
        """Return whether a path is silent and all its ports, as the fabric routes now, miss several probes."""
        leading = dict(entry.leading())
        return (
            self._is_silent(entry)
            and _is_unexplained(entry, silent_links)
            and {known.routing for known in leading.values()} == {self.table.routing}
            and all(self._loss.of(port).probes >= REPORTS_TO_CONFIRM for port in leading)
        )

    def _has_recovered(self, entry: PathEntry, since_s: float) -> bool:
        leading = [known for _, known in entry.leading() if known.routing == self.table.routing]
        return bool(leading) and all(known.seen_s > since_s for known in leading)


def _is_unexplained(entry: PathEntry, silent_links: Set[int]) -> bool:
    """Return whether no dead or silent link explains the losses of a path."""
    return not entry.is_dead and silent_links.isdisjoint(entry.path)
