"""The pass tensorize: the search of a stencil's place in a block, and the rewrite, in `tensorize`."""
