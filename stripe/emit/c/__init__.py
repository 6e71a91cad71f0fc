"""C code from programs: `emit_c(program, options)` gives one self-contained C11 file."""

from __future__ import annotations

from stripe.emit.c.module import CModule, EntryParameter, emit_c, emit_module
from stripe.emit.c.options import COptions

__all__ = ["CModule", "COptions", "EntryParameter", "emit_c", "emit_module"]
