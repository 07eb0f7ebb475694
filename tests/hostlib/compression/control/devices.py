"""What encoding costs on a GPU and on a CPU, and how fast a budget follows."""

from hostlib.compression.control.cost import Linear, MeasuredCosts

FOLLOWS_IN = 5
"""Steps after a change in which the throughput may be anything."""

GPU = MeasuredCosts(
    select=Linear(2e-5, 1.2e-10, 5e-10),
    scatter=Linear(2e-5, 5e-11, 2.5e-10),
    convert=Linear(2e-5, 5e-11),
    hop_s=5e-5,
    quantise=Linear(2e-5, 5e-11),
)

CPU = MeasuredCosts(
    select=Linear(1e-4, 2.5e-9, 1e-8),
    scatter=Linear(1e-4, 1e-9, 5e-9),
    convert=Linear(1e-4, 1e-9),
    hop_s=5e-5,
    quantise=Linear(1e-4, 3e-9),
)
