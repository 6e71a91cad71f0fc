"""The pass pad: kernels with further points, on buffers with padding.

From the options to the program: `pad` (options, buffers and copies), `plan` (whether added points keep the meaning).
"""
