"""`make fidelity`: how near the models of machines come to other tools and to chips, written to docs/fidelity.md."""
