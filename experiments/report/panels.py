"""Old name of the panels in ``experiments.report.findings``."""

from experiments.report.findings import Panel, PanelChart

__all__ = ["Panel", "PanelChart"]
