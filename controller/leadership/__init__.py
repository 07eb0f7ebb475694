"""Leader election among controllers that share a database: only the leader plans and writes to switches."""
