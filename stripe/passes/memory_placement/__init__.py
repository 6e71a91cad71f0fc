"""The pass memory_placement: live ranges, packing, addresses."""
