"""Writes the LALR tables beside each grammar (`make grammar`)."""

from __future__ import annotations

from stripe.ir.package_data import data_path
from stripe.ir.text.grammar import STARTS, tables_text

for name in STARTS:
    data_path("grammar", f"{name}.lark").with_suffix(".tables.json").write_text(
        tables_text(name), encoding="utf-8"
    )
