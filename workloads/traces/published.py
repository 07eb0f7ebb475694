"""Published figures of the Lingjun dataset: totals, and the sizes of jobs whose model has a name.

Sources are Crux (section 2.2), users who counted or plotted the released tables, and rows that they showed. Sizes were
read off a plot and are accurate to four jobs; submission times between known rows are interpolated.
"""

from collections.abc import Mapping

NUM_JOBS = 5180
NUM_WORKERS = 23742
NUM_HOSTS = 847
NUM_GPU_JOBS = 2783
CONTENDING_SHARE = 0.363
"""Crux, section 2.2; another user's estimate from the tables is 0.495."""

PEAK_JOBS, PEAK_GPUS = 39, 1208
"""Jobs of at least 8 GPUs at the busiest moment, 28 July 2023, 05:16, and their GPUs."""

STATUS: Mapping[str, int] = {"Succeeded": 2242, "Stopped": 1634, "Failed": 1295, "Running": 9}

NEVER_RAN = 803
"""Jobs without a start time."""

MODELS: Mapping[str, int] = {
    "unknown": 2793, "cognitive": 1067, "llama": 266, "GPT-13b": 205, "ResNet": 118, "GPT-3b": 98, "rl": 93,
    "GPT-7b": 83, "preprocess": 66, "65b": 57, "mnist": 39, "GPT-13B": 33, "llama_30b": 32, "DLM": 30, "GPT": 28,
    "dota": 28, "sidecar": 25, "multigen": 25, "word_embedding": 22, "gpt": 18, "image": 17, "130b-infer": 10,
    "reward": 9, "concat": 8, "66b": 6, "layer_attn": 4,
}  # fmt: skip

GPUS: Mapping[int, int] = {
    1: 219, 2: 102, 3: 12, 4: 184, 6: 27, 8: 859, 9: 3, 12: 12, 16: 383, 20: 3, 24: 31, 32: 426, 40: 8, 48: 78, 56: 3,
    59: 3, 60: 47, 64: 105, 72: 23, 80: 16, 88: 16, 91: 3, 104: 3, 120: 4, 128: 16, 256: 145, 400: 14, 448: 3, 464: 3,
    496: 3, 504: 3, 512: 23, 688: 3,
}  # fmt: skip
"""Number of jobs by their GPUs, without jobs that have none."""

GPUS_BY_MODEL: Mapping[str, Mapping[int, int]] = {
    "llama": {0: 48, 1: 36, 2: 24, 3: 2, 4: 66, 6: 19, 8: 25, 16: 5, 24: 7, 32: 20, 64: 4, 72: 7, 128: 3},
    "llama_30b": {32: 1, 48: 12, 72: 14, 80: 5},
    "GPT": {0: 28},
    "gpt": {1: 2, 2: 3, 4: 2, 8: 9, 32: 2},
    "GPT-3b": {0: 84, 8: 1, 16: 7, 64: 6},
    "GPT-7b": {0: 20, 8: 7, 32: 56},
    "GPT-13b": {0: 12, 4: 12, 8: 70, 16: 29, 24: 14, 32: 8, 48: 60},
    "GPT-13B": {8: 33},
    "65b": {0: 2, 32: 54, 40: 1},
    "66b": {32: 6},
    "130b-infer": {8: 10},
    "DLM": {8: 2, 48: 3, 56: 1, 256: 24},
    "ResNet": {0: 61, 1: 33, 2: 7, 3: 3, 4: 3, 6: 2, 8: 9},
    "mnist": {0: 15, 1: 1, 8: 20, 16: 3},
    "word_embedding": {0: 1, 256: 7, 400: 14},
}
"""Number of jobs by their GPUs, zero included, for named models: 1,045 jobs."""

DURATION_MIN: Mapping[float, float] = {0.25: 1, 0.5: 4, 0.75: 18, 0.9: 165, 0.95: 661, 0.99: 3288, 1.0: 20631}
"""Quantiles over 4,368 jobs that started and ended."""

QUEUE_MIN: Mapping[float, float] = {0.5: 1, 0.9: 3, 0.99: 36, 1.0: 5416}
"""Quantiles over 4,376 jobs: time from submission to start."""

WORKERS_WITHOUT_TIME = 28
WORKERS_WITHOUT_DURATION = 946
WORKERS_ON_UNKNOWN_HOSTS = 2917
WORKERS_WITHOUT_RESOURCES = 5

FIRST_DAY = "2023-07-15"

SUBMITTED_UP_TO: tuple[tuple[float, int], ...] = (
    (0.78, 0), (2.98, 15), (4.27, 19), (6.55, 30), (50.27, 169), (79.0, 524), (170.75, 1871), (183.5, 1945),
    (218.68, 2088), (250.1, 2978), (254.45, 3112), (265.85, 3144), (274.02, 3542), (277.05, 3635), (278.5, 3669),
    (294.85, 3849), (296.93, 3950), (300.95, 4098), (314.37, 4202), (316.37, 4310), (317.27, 4360), (318.47, 4455),
    (319.97, 4606), (320.58, 4656), (321.7, 4736), (344.97, 5009), (350.67, 5080), (363.75, 5141), (373.87, 5168),
    (382.83, 5180),
)  # fmt: skip
"""Hours since the first day began, and the number of jobs submitted by then."""

RACK_SIZES: Mapping[str, tuple[int, ...]] = {
    "P10": (8, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7, 7, 8, 8, 7, 8, 8, 7, 5, 8, 8, 8, 8, 6, 6, 7, 8,
            6, 8, 8, 8, 8, 8, 7, 3, 8, 7, 8, 8),
    "P12": (7, 8, 8, 8, 8, 8, 8, 8, 8, 6, 7, 8, 8, 5, 8, 8, 8, 6, 8, 8, 8, 8, 8, 7, 8, 8, 8, 8, 8, 8, 8, 8, 2, 2, 7, 7,
            8, 6, 7, 7, 6, 8),
    "P8": (8, 8, 6, 7, 6, 7, 8, 7, 7, 6, 7, 4, 7, 6, 6, 7, 8, 5, 5, 4, 6, 8, 7, 5, 5, 5, 6, 6, 2),
}  # fmt: skip
"""Number of hosts of every rack, by its group of aggregation switches."""
