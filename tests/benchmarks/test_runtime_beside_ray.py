"""Ray, which the runtime is measured beside, computes what it is asked for."""

import numpy as np
import pytest

from benchmarks.runtime_peers import started_ray
from tests.interpreters import interpreter_with


@pytest.mark.slow
def test_ray_computes_what_the_runtime_is_measured_beside() -> None:
    """The worker checks each result, and answers with no time where one is wrong."""
    ray = started_ray(str(interpreter_with("ray", "2.60.0", "ray", f"numpy=={np.__version__}")))
    if isinstance(ray, str):
        pytest.skip(f"the runtime is not tried beside Ray: {ray}")
    try:
        assert ray.version == "2.60.0"
        for figure in ("chained", "fused", "compiled_graph"):
            assert ray.seconds(figure, 2, 8) > 0
        with pytest.raises(OSError, match="ended"):
            ray.seconds("no such figure", 2, 8)
    finally:
        ray.close()
