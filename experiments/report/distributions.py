"""Old name of the distributions in ``experiments.report.findings``."""

from experiments.report.findings import Distribution, DistributionChart

__all__ = ["Distribution", "DistributionChart"]
