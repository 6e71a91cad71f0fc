"""The parts that passes share: tiling, copies, packing, banks, strides, locations, pruning. No pass is known here."""
