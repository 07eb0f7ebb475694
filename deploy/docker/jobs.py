"""Two jobs that share the fabric of docker-compose.yml and stay until SIGTERM.

The argument is the controller's address. Who they are is in TRAINYARD_CA, TRAINYARD_CERTIFICATE and TRAINYARD_KEY.
"""

import signal
import sys

from hostlib import BlockingClient, Flow, FlowGroup, Job, Nic, Profile

GPT = Job("gpt", hosts=("h0", "h2"), gpus=16, profile=Profile(compute_s=1.2, comm_start=0.7, work=19.2))
BERT = Job("bert", hosts=("h1", "h3"), gpus=8, profile=Profile(compute_s=0.4, comm_start=0.5, work=3.2))
GPT_GRADIENTS = FlowGroup("gradients", flows=(Flow(Nic("h0"), Nic("h2"), size_bytes=3_000_000_000),))
BERT_GRADIENTS = FlowGroup("gradients", flows=(Flow(Nic("h1"), Nic("h3"), size_bytes=1_000_000_000),))


def main() -> None:
    """Register both, and withdraw them in the end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with BlockingClient(sys.argv[1]) as client:
        for job, gradients in ((GPT, GPT_GRADIENTS), (BERT, BERT_GRADIENTS)):
            client.register_job(job)
            client.register_flow_groups(job.name, [gradients])
        print("registered gpt and bert", flush=True)
        try:
            signal.pause()
        finally:
            for job in (GPT, BERT):
                client.deregister(job.name)


if __name__ == "__main__":
    main()
