"""The pass map: products onto the memories and the grid of a machine.

From the options to the blocks: `map` (options, the choice among the best plans by simulation), `build` (the problem of
a block, and the blocks of a plan). The search is in `stripe/cost/mapping`.
"""
