"""Hardware models by name or path, and this processor's."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from stripe.config.files import NATIVE
from stripe.config.model import Scalar
from stripe.hw.load import load_hardware
from stripe.hw.schema import HardwareModel


def find_hardware(
    name_or_path: str, defines: Mapping[str, Scalar] | None = None, elsewhere: Collection[str] = ()
) -> HardwareModel:
    """The hardware model with that name or path, as `load_hardware` gives it; for `native` this processor's model."""
    if name_or_path != NATIVE:
        return load_hardware(name_or_path, defines, elsewhere)
    from stripe.pipeline.native import native_model  # finds and measures the processor

    return native_model(defines, elsewhere)
