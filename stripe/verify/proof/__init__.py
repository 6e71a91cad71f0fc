"""The proof that a rewrite kept the meaning: value numbering, reaching definitions, relations as integer sets."""
