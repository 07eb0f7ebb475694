"""Sparse matrices from their entries."""

from collections.abc import Sequence

from scipy.sparse import coo_array, csr_array


def sparse_matrix(entries: Sequence[tuple[int, int, float]], rows: int, columns: int) -> csr_array:
    """A matrix with these entries, each a row, a column and a value; those of one place are added."""
    row, column, value = zip(*entries, strict=True) if entries else ((), (), ())
    return csr_array(coo_array((value, (row, column)), shape=(rows, columns), dtype=float))
