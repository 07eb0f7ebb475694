import asyncio

from hostlib import Client, Flow, FlowGroup, Job, Nic, Profile

JOB = Job("gpt", hosts=("h0", "h2"), gpus=16, profile=Profile(compute_s=1.2, comm_start=0.7, work=19.2))
GRADIENTS = FlowGroup("gradients", flows=(Flow(Nic("h0"), Nic("h2"), size_bytes=3_000_000_000),))


async def main() -> None:
    async with Client("127.0.0.1:4790") as client:
        await client.register_job(JOB)
        five_tuples = await client.register_flow_groups(JOB.name, [GRADIENTS])
        print("send from port", five_tuples["gradients"][0].source_port)
        await client.settle()
        print((await anext(client.directives(JOB.name))).flows[0])
        await client.deregister(JOB.name)


asyncio.run(main())
