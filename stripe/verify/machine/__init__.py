"""Independent checkers of schedule and placement; they share no code with the passes that made them.

`claims` (which checks a program has to pass), `units` and `reach` (locations, and memories that units reach),
`registers`, `order` and `dependences` (of the statements of main), `schedule` (a schedule, a placement) with
`interference` and `side_by_side` (buffers that share bytes). `traffic` checks the times of a simulation, which no
program holds: tests ask it.
"""
