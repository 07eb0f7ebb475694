"""Planning: Snapshots of the registry, the decision pipeline, the planning loop, directives and fail-over."""
