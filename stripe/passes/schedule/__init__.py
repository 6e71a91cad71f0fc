"""The pass schedule: which unit, which memory, which transfers and when."""
