"""Results as pandas DataFrames, where pandas is installed."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def frame_of(rows: Sequence[Mapping[str, Any]]) -> "pd.DataFrame":
    """Return a DataFrame of these rows. Raises ImportError, saying what to install, where there is no pandas."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise ImportError("to_frame() needs pandas: pip install pandas") from error
    return pd.DataFrame(rows)
