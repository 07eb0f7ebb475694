"""Traces of weeks on the simulator: jobs arrive, queue for GPUs, iterate under a policy's Plans, and leave."""
