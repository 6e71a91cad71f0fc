"""The pass partition: compute over units, memory over banks.

From the options to the program: `partition` (options, work over units), `memory` (allocations over banks).
"""
