"""What the tests share: the golden-file harness."""
