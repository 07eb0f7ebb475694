"""Job of the Clos of clos.yaml, with one host at each ToR, that stays registered until Enter."""

from hostlib import BlockingClient, Flow, FlowGroup, Job, Nic, Profile

HOSTS = ("h0", "h2")
JOB = Job("gpt", hosts=HOSTS, gpus=16, profile=Profile(compute_s=1.2, comm_start=0.7, work=19.2))
RING = FlowGroup(
    "ring",
    flows=tuple(
        Flow(Nic(source), Nic(destination), size_bytes=3_000_000_000)
        for source, destination in zip(HOSTS, reversed(HOSTS), strict=True)
    ),
)

with BlockingClient("127.0.0.1:4790") as client:
    client.register_job(JOB)
    client.register_flow_groups(JOB.name, [RING])
    input("Enter ends the job. ")
    client.deregister(JOB.name)
