"""Archives of tensors, as a whole."""

from __future__ import annotations

from pathlib import Path

from stripe.exec.arith import Array
from stripe.exec.data import stored_arrays


def load_arrays(path: Path) -> dict[str, Array]:
    """All tensors of a .npz file."""
    with stored_arrays(path) as stored:
        return {name: array.read() for name, array in stored.items()}
