"""A front end: the facts about a language, the reader of its files, and references to compare results with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from stripe.ir import Diagnostic, Program, Span, StripeError, StripeWarning

    Arrays: TypeAlias = Mapping[str, npt.NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of an input, or a part of a text: empty lines stand for the parts before it, so that line numbers are
    those of the file. `name` is for messages.
    """

    data: bytes
    name: str
    language: str

    @property
    def text(self) -> str:
        """The input as text; UTF-8 is checked where it is read."""
        return self.data.decode("utf-8")


ReadOption: TypeAlias = Literal["shapes", "dims", "operators", "random_weights", "layers"]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a command line that front ends read: values of `--shape`, of `--dim`, folders of `--operators`,
    and whether `--random-weights` is given. An option that a front end does not take is refused.
    """

    shapes: tuple[str, ...] = ()
    dims: tuple[tuple[str, int], ...] = ()
    operators: tuple[str, ...] = ()
    random_weights: bool = False
    layers: bool = False
    """Whether the value of each layer of a network is an output (`--compare-layers`)."""


_OPTIONS: Mapping[ReadOption, tuple[str, str]] = {
    "shapes": ("--shape", "Tile inputs"),
    "dims": ("--dim", "networks"),
    "operators": ("--operators", "networks"),
    "random_weights": ("--random-weights", "networks"),
    "layers": ("--compare-layers", "networks"),
}
"""Each of `ReadOptions` on command lines, and the inputs that it is for."""


def refusal(found: Sequence[Diagnostic], place: Callable[[Diagnostic], StripeError]) -> StripeError:
    """The error that has all findings, each at its place, in the order of the source."""
    from stripe.ir.errors import combine_by_place

    return combine_by_place(map(place, found))


def _nowhere(diagnostic: Diagnostic) -> StripeError:
    from stripe.ir.errors import StripeError  # loads the IR, which help does without

    where = f"block {diagnostic.name}" if diagnostic.name else None
    return StripeError(diagnostic.message, where=where, hint=diagnostic.hint or None)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program, warnings about its source, the places of its statements where they are known, and a finding about the
    program as an error at its place in the source."""

    program: Program
    warnings: tuple[StripeWarning, ...] = ()
    spans: Mapping[tuple[int, ...], Span] = field(default_factory=dict[tuple[int, ...], "Span"])
    place: Callable[[Diagnostic], StripeError] = _nowhere


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """A language. Functions are named as `module:function`, and imported when they are first called.

    `reader` takes a `Source` and `ReadOptions`, and gives a `Loaded` whose program is valid; it raises StripeError for
    errors in the source. Each of `references` takes a `Source`, `ReadOptions` and the inputs as arrays by name, and
    gives the outputs: a way to compute them without the compiler. `as_tile` gives the text of a Tile file that means
    the same.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: str
    references: Mapping[str, str] = field(default_factory=dict[str, str])
    as_tile: str = ""
    files: str = ""
    """Names a function of a `Source` that gives the paths of other files which its program is read from."""
    starts: str = ""
    """Regular expression for the first line of code of such a text, which tells the language of standard input."""
    out_of_bounds: bool = False
    """Whether a program can access elements outside of its tensors, so that code without checks would crash."""
    binary: bool = False
    """Whether files are bytes; else they are UTF-8 text."""
    rounds_alike: bool = True
    """Whether references round each operation as Stripe does, so that results may have to be equal bit for bit."""
    takes: tuple[ReadOption, ...] = ()
    """The options that the reader takes; all others are refused before it is called."""

    def load(self, source: Source, options: ReadOptions) -> Loaded:
        """The program that `source` denotes, checked for structure. Raises StripeError with its place, ConfigError for
        options that the language does not take."""
        self._require_taken(options)
        return cast("Callable[[Source, ReadOptions], Loaded]", _function(self.reader))(source, options)

    def tile(self, source: Source, options: ReadOptions) -> str:
        """The Tile text of a language that has one. Raises as `load`."""
        self._require_taken(options)
        return cast("Callable[[Source, ReadOptions], str]", _function(self.as_tile))(source, options)

    def _require_taken(self, options: ReadOptions) -> None:
        from stripe.ir.errors import ConfigError  # loads the IR, which help does without

        for name, (flag, inputs) in _OPTIONS.items():
            if getattr(options, name) and name not in self.takes:
                hint = f"leave {flag} out"
                if name == "shapes" and "dims" in self.takes:
                    hint = "bind symbolic sizes with --dim N=1"
                raise ConfigError(f"{flag} is for {inputs}; the input's language is '{self.name}'", hint=hint)

    def files_beside(self, source: Source) -> tuple[Path, ...]:
        """The other files that the program of `source` is read from."""
        if not self.files:
            return ()
        return cast("Callable[[Source], tuple[Path, ...]]", _function(self.files))(source)

    def evaluate(self, reference: str, source: Source, options: ReadOptions, inputs: Arrays) -> Arrays:
        """The outputs by `reference`. Raises KeyError when the language has no such reference."""
        function = _function(self.references[reference])
        return cast("Callable[[Source, ReadOptions, Arrays], Arrays]", function)(source, options, inputs)

    def begins(self, line: str) -> bool:
        """Whether a text with this first line of code looks like one of this language."""
        return bool(self.starts) and re.match(self.starts, line) is not None


def _function(place: str) -> object:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
