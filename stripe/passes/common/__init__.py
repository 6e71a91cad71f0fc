"""What several passes share: tiling, splicing, visibility of buffers, copies, positions in the machine."""
