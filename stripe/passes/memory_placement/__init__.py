"""The pass memory_placement: live ranges, packing, addresses.

From the options to the addresses: `memory_placement` (options, buffers by memory), `units` (locations that may be one
place), `in_flight` and `side_by_side` (buffers that are alive at one time inside of blocks), `packing` (addresses).
"""
