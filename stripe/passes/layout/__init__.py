"""The pass layout: dimensions packed and permuted, and the copies that it takes.

From the options to the program: `layout` (options, and the layout of a buffer), `choose` (layouts of a whole network),
`tiled` and `dots` (layouts that tiles and instructions for dot products suit), `pads` (values of holes), `copies`
(tensors of the user).
"""
