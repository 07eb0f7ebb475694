"""What ``benchmarks/openflow.py`` measures, a module for each situation."""
