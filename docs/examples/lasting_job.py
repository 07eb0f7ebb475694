"""Job that stays registered until Enter."""

from hostlib import BlockingClient, Flow, FlowGroup, Job, Nic, Profile

JOB = Job("gpt", hosts=("h0", "h1"), gpus=16, profile=Profile(compute_s=1.2, comm_start=0.7, work=19.2))
GRADIENTS = FlowGroup("gradients", flows=(Flow(Nic("h0"), Nic("h1"), size_bytes=3_000_000_000),))

with BlockingClient("127.0.0.1:4790") as client:
    client.register_job(JOB)
    client.register_flow_groups(JOB.name, [GRADIENTS])
    input("Enter ends the job. ")
    client.deregister(JOB.name)
