"""Training loop that uses the host library; it also runs without a controller."""

import time

from hostlib import BlockingClient, Flow, FlowGroup, Job, Nic, Profile

JOB = Job("gpt", hosts=("h0", "h2"), gpus=16, profile=Profile(compute_s=0.1, comm_start=0.5, work=1.6))
GRADIENTS = FlowGroup("gradients", flows=(Flow(Nic("h0"), Nic("h2"), size_bytes=3_000_000_000),))


def train() -> None:
    """Compute one iteration."""
    time.sleep(0.1)


with BlockingClient("127.0.0.1:4790") as client:
    client.register_job(JOB)
    client.register_flow_groups(JOB.name, [GRADIENTS])
    if client.acknowledged(JOB.name, timeout_s=2.0):
        print("send from port", client.five_tuples(JOB.name)["gradients"][0].source_port)
    for iteration in range(10):
        client.start_flow_groups(JOB.name, ["gradients"], iteration)
        train()
    client.report_profile(JOB.name, Profile(compute_s=0.11, comm_start=0.6, work=1.76))
    directives = client.newest_directives(JOB.name)
    print("level", directives.flows[0].level if directives and directives.flows else "unknown")
    client.deregister(JOB.name)
