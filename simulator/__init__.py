"""Flow-level simulator: flows as fluids, jobs that iterate, and coflows on one big switch."""
