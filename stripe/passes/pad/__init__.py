"""The pass pad: what may be padded, why it keeps the meaning, and the rewrite."""
