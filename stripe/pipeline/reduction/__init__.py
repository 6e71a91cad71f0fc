"""Shrinks programs and pass lists while something goes on to fail (`stripe-reduce`)."""

from __future__ import annotations
