"""The pass schedule: which unit, which memory, which transfers and when.

From the options to the scheduled block: `schedule` (options), `uses` and `written` (needs of each statement), `routes`
and `banks` (the machine), `plan` (residency of buffers), `time` (loads of units, order), `build` (copies and
dependences).
"""
