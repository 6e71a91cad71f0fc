"""Co-design sweeps: design points of a machine, evaluated over networks; the store of results, and reports.

From a file to its plan: `schema`, `templates` (machine and lists), `space` (points), `plan`. Points to rows: `strategy`
(which points), `run`, `workers` and `cluster`, `evaluate` (a point, by `memo` and `cache`), `metrics`; `store` keeps
them. Rows to answers: `results` (best points, fronts), `trust` (reversals, axes without an effect), `decisions`
(differences of two points), `verify`, `report`. `extras` loads libraries that are optional.
"""
