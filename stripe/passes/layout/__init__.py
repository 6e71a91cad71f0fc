"""The pass layout: dimensions packed and permuted, and the copies that it takes."""
