"""Job that stays registered until Enter."""

import os
from argparse import ArgumentParser
from contextlib import suppress

from hostlib import BlockingClient, Flow, FlowGroup, Job, Nic, Profile

parser = ArgumentParser(description=__doc__)
controller = os.environ.get("TRAINYARD_CONTROLLER", "127.0.0.1:4790")
parser.add_argument("--controller", default=controller, help="HOST:PORT or unix:/PATH of the controller")
parser.add_argument("--name", default="gpt", help="name of the job")
parser.add_argument("--hosts", nargs=2, default=["h0", "h1"], help="the host that sends, and the one that receives")
parser.add_argument("--gpus", type=int, default=2, help="GPUs on both hosts together")
options = parser.parse_args()

sender, receiver = options.hosts
profile = Profile(compute_s=1.2, comm_start=0.7, work=1.2 * options.gpus)
job = Job(options.name, hosts=(sender, receiver), gpus=options.gpus, profile=profile)
gradients = FlowGroup("gradients", flows=(Flow(Nic(sender), Nic(receiver), size_bytes=3_000_000_000),))

with BlockingClient(options.controller) as client:
    client.register_job(job)
    client.register_flow_groups(job.name, [gradients])
    with suppress(EOFError, RuntimeError):  # the standard input has ended, or is closed
        input("Enter ends the job. ")
    client.deregister(job.name)
