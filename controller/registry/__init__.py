"""The registry: jobs with their flow groups, leases and source ports, and the journal that commits its changes."""
