"""JSON: the reader of programs as `--emit json` writes them."""

from __future__ import annotations

from functools import partial

from stripe.frontends.frontend import Loaded, ReadOptions, Source, refusal
from stripe.ir import Diagnostic, StripeError, check_magnitude, verify_structural
from stripe.ir.text.json_ir import parse_json
from stripe.ir.text.json_place import json_path

_FIELDS = {"index": "indices", "constraint": "constraints", "refinement": "refinements"}


def load(source: Source, _options: ReadOptions) -> Loaded:
    """The program of a JSON text. Raises StripeError with all findings, each with its JSON path."""
    program = parse_json(source.text, source.name)
    place = partial(_located, source.name)
    if found := verify_structural(program) or check_magnitude(program):
        raise refusal(found, place)
    return Loaded(program, place=place)


def _located(name: str, diagnostic: Diagnostic) -> StripeError:
    """A finding of the verifier at the JSON path of the part that it is about."""
    path: list[str | int] = ["entry"] if diagnostic.path else []
    for number in diagnostic.path[1:]:
        path += ["statements", number]
    if diagnostic.part is not None:
        kind, number = diagnostic.part
        path = ["constants", number] if kind == "constant" else [*path, _FIELDS[kind], number]
    return StripeError(diagnostic.message, path=name, where=json_path(path), hint=diagnostic.hint or None)
