"""The pass partition: compute over units, memory over banks."""
