"""Independent checkers of schedule and placement; they share no code with the passes that made them."""
