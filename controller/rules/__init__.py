"""A Plan as rules for switches, whatever protocol a switch speaks."""
