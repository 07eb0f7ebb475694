"""A trace of weeks on the simulator: jobs that come, wait, iterate under a policy's plans, and leave."""
