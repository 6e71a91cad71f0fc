"""Blocks that several tests use."""

from __future__ import annotations

from stripe.ir import Block, parse_program
from tests.support.programs import source

CONV = source("poly/conv")


def conv() -> Block:
    """The main block of a 3x3 convolution with a relu after it."""
    return parse_program(CONV, "conv.stripe").main
