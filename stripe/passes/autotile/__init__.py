"""The pass autotile: the search of tile sizes by exact footprints, by a machine or by the original's weights.

From the options to the choice: `autotile` (options), `tiler` (the blocks of a program, each kind searched once),
`tiling` (limits of a tile, the sizes to try, and the estimate of its cost), `search` (the best estimates, by branch and
bound), `choice` (the best price of these).
"""
