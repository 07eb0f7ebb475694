"""From the registry to a Plan in force: Snapshots, the planner, directives and fail-over."""
