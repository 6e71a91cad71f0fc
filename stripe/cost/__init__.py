"""Exact counts, the analytical cost model, the event simulator and energy."""
