import asyncio

from hostlib import Client, Flow, FlowGroup, Job, Nic, Profile

JOB = Job("gpt", hosts=("h0", "h2"), gpus=16, profile=Profile(compute_s=1.2, comm_start=0.7, work=19.2))
GRADIENTS = FlowGroup("gradients", flows=(Flow(Nic("h0"), Nic("h2"), size_bytes=3_000_000_000),))


async def main() -> None:
    async with Client("127.0.0.1:4790") as client:
        client.register_job(JOB)
        client.register_flow_groups(JOB.name, [GRADIENTS])
        async for directives in client.directives(JOB.name):
            for flow in directives.flows:
                print("send from port", flow.source_port)
                print(flow)
            if directives.flows:
                break
        client.deregister(JOB.name)


asyncio.run(main())
