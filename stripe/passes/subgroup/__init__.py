"""The pass subgroup: blocks over the lanes of a subgroup.

From the options to the program: `subgroup` (options, and the rewrite), `search` (indices over lanes, tile of a lane).
"""
