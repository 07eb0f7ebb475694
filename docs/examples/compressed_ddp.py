"""Data-parallel training whose gradients fit the network. Start it with torchrun.

Sleep stands in for an accelerator's time. LINK_MBPS=2 tells NetSense that a rank may send 2 Mbit/s, and no more.
"""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hostlib.compression import NetSense


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    layers = [layer for _ in range(6) for layer in (nn.Linear(512, 512), nn.ReLU())]
    for layer in layers[1::2]:
        layer.register_full_backward_hook(lambda *_: time.sleep(0.02))
    model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(512, 10)), bucket_cap_mb=1)
    net = NetSense()
    net.attach(model)
    if "LINK_MBPS" in os.environ:
        net.direct(rate_bps=1e6 * float(os.environ["LINK_MBPS"]), slack_s=None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(30):
        optimizer.zero_grad()
        model(torch.randn(32, 512)).square().mean().backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print(f"ratio {net.stats().ratio:.3g}. {net.stats().reason}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
