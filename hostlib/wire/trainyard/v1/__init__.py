"""Generated from ``trainyard.proto`` by ``make proto``."""
