"""The time of fluid models, in whole picoseconds: ends that coincide in arithmetic coincide there."""

import numpy as np

PS_PER_S = 1_000_000_000_000
NEVER_PS = np.iinfo(np.int64).max
