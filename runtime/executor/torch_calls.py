"""Functions of PyTorch on arrays of the store. Import it only where one runs."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

# A host has several devices, each with a thread of its own: more threads for one operation would only compete.
torch.set_num_threads(1)
# Inputs that lie in the memory of another host are read-only. Functions do not change their inputs.
warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)


def on_arrays(call: Callable[..., Any]) -> Callable[..., list[np.ndarray[Any, Any]]]:
    """Return a function on NumPy's arrays; they share their memory with the tensors that ``call`` takes and makes."""

    def called(*inputs: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
        given = [torch.from_numpy(each) for each in inputs]
        made = call(*given)
        for number, (array, tensor) in enumerate(zip(inputs, given, strict=True)):
            if tensor._version and not array.flags.writeable:
                raise ValueError(f"it has written into its input {number}, which is read-only")
        tensors = made if isinstance(made, tuple | list) else (made,)
        return [each.detach().contiguous().numpy() for each in tensors]

    return called
