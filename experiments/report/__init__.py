"""Reports: figures by matplotlib, and self-contained HTML pages of runs, evaluations and sweeps."""
