"""Turn the reports of host agents into candidate paths, link loads and broken links.

A host reports probes in a ``ProbeExchange``. ``Telemetry`` checks every report and decodes its INT stack
(``IntReportBatch``, ``PathDecoder``). Each pair of NICs has a ``PairMonitor`` with its ``PathTable``; the
``LinkFailureDetector`` weighs the evidence of all pairs. ``ProbedPaths`` presents the result to planning.
"""
