"""A job whose gradients are what iperf sends from port 50001 of h1 to h2; it stays until Enter."""

from ipaddress import IPv4Address

from hostlib import BlockingClient, FiveTuple, Flow, FlowGroup, Job, Nic, Profile

JOB = Job("iperf", hosts=("h1", "h2"), gpus=2, profile=Profile(compute_s=1.0, comm_start=0.5, work=2.0))
CONNECTION = FiveTuple(
    IPv4Address("10.0.1.1"), IPv4Address("10.0.2.1"), protocol=6, source_port=50001, destination_port=5001
)
GRADIENTS = FlowGroup("gradients", flows=(Flow(Nic("h1"), Nic("h2"), size_bytes=10_000_000, five_tuple=CONNECTION),))

with BlockingClient("127.0.0.1:4790") as client:
    client.register_job(JOB)
    client.register_flow_groups(JOB.name, [GRADIENTS])
    input("Enter ends the job. ")
    client.deregister(JOB.name)
