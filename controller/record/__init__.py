"""The record of a controller's decisions: their Snapshots and Plans as facts, and the replay of them."""
