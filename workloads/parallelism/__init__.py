"""How a model is spread over hosts, one kind a module: each makes a job's task graph of an iteration."""
