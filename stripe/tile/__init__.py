"""The Tile language: parser, syntax tree, shape and type inference, index ranges, lowering to Stripe."""
