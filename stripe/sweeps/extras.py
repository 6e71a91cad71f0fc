"""Libraries that only sweeps need, which `pip install stripe-opt[sweep]` brings."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from stripe.ir import ConfigError


def extra(module: str, purpose: str, name: str = "sweep") -> Any:
    """The module of an optional library. Raises ConfigError that says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        library = module.split(".")[0]
        raise ConfigError(
            f"{purpose} needs {library}, which is not installed", hint=f"pip install 'stripe-opt[{name}]'"
        ) from None
