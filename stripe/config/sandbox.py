"""The Jinja environment in which templates of strangers render: they compute numbers and texts, and nothing else.

Beyond Jinja's own sandbox: no attributes but those of loops, name spaces and mappings; a short list of filters and
functions; arithmetic whose results stay small; and a budget of work for the whole rendering, so that no template runs
for long or takes much memory. Every piece of output carries the place in the template that it comes from.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sized
from pathlib import Path
from types import CodeType
from typing import cast

from jinja2 import (
    BaseLoader,
    BytecodeCache,
    Environment,
    StrictUndefined,
    Template,
    TemplateNotFound,
    Undefined,
    nodes,
    pass_context,
)
from jinja2.bccache import Bucket
from jinja2.environment import TemplateModule
from jinja2.exceptions import SecurityError, TemplateSyntaxError
from jinja2.filters import FILTERS  # pyright: ignore[reportUnknownVariableType]
from jinja2.lexer import Token, TokenStream
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import SandboxedEnvironment
from jinja2.tests import TESTS  # pyright: ignore[reportUnknownVariableType]
from jinja2.utils import Namespace
from typing_extensions import override

from stripe.config.arithmetic import LimitError, arithmetic, kind, number
from stripe.config.document import MAX_SOURCE, Piece
from stripe.config.hooks import EMIT, Hooks

WORK_LIMIT = 4_000_000
"""Work of one rendering: a character written counts 1, an element of a list 1, a call `_CALL`."""

MAX_ITEMS = 100_000
"""Longest list or range."""

_CALL = 20
"""The work of a call: with all that Jinja does around it, it takes as long as so many elements of a list."""

MAX_TOKENS = 20_000
"""Words, numbers and signs between the tags of one file: Jinja takes long to compile many."""

FILTER_NAMES = frozenset(
    "abs count d default dictsort first float int items last length list lower map max min reject reverse round "
    "select sort sum trim unique upper".split()
)
TEST_NAMES = frozenset(
    "boolean defined divisibleby even false float integer iterable mapping none number odd sequence string true "
    "undefined".split()
)
_MAPPING_METHODS = frozenset(("items", "keys", "values", "get"))


class _FolderLoader(BaseLoader):
    """Loads files of one folder, by plain name; a link that leads out of it is refused."""

    def __init__(self, folder: Path, root: str, source: str) -> None:
        self._folder = folder.resolve()
        self._root = root
        self._source = source

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        if template == self._root:
            return self._source, template, lambda: True
        path = self._folder / template
        if "\\" in template or Path(template).name != template or path.resolve().parent != self._folder:
            raise SecurityError(f"'{template}' does not lie in the template's own folder")
        if not path.is_file():
            raise TemplateNotFound(template)
        source = path.read_text("utf-8")
        if len(source) > MAX_SOURCE:
            raise LimitError(f"'{template}' has {len(source)} characters, more than {MAX_SOURCE}")
        if isinstance(environment, ConfigEnvironment):
            environment.sources[template] = source
        return source, template, lambda: True


def show(value: object) -> str:
    """The text of a value in the output. Whole numbers have no fraction part, true, false and null are JSON's.

    Raises TypeError for a value that has no text: a list, a function.
    """
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("the result is no finite number")
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, str):
        return value
    if isinstance(value, Undefined):
        return str(value)  # raises its own error
    raise TypeError(f"{kind(value)} cannot be written here; write its elements in a loop")


class _CodeCache(BytecodeCache):
    """The code of templates that this process compiled, by name and content: a sweep renders one template often."""

    MOST = 256

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], CodeType | None] = {}

    @override
    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    @override
    def dump_bytecode(self, bucket: Bucket) -> None:
        if len(self._codes) >= self.MOST:
            self._codes.clear()
        self._codes[bucket.key, bucket.checksum] = bucket.code


_COMPILED = _CodeCache()


class ConfigEnvironment(SandboxedEnvironment):
    """The environment of one rendering of `source`, which the loader knows as `name`."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def __init__(self, folder: Path, name: str, source: str) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            line_comment_prefix="##",
            keep_trailing_newline=True,
            undefined=StrictUndefined,
            loader=_FolderLoader(folder, name, source),
            auto_reload=False,
            bytecode_cache=_COMPILED,
            optimized=False,  # filters would run while a template is compiled
        )
        self._work = 0
        self.sources = {name: source}
        """The text of each file that was loaded, by name."""
        self.globals = {
            "range": self._range, "min": min, "max": max, "namespace": Namespace,
            "ceil": math.ceil, "floor": math.floor, "log2": math.log2,
        }  # fmt: skip
        known = cast("Mapping[str, Callable[..., object]]", FILTERS)
        # `join` and `string` have their own, because Jinja's would print lists and grow without limit
        own: dict[str, Callable[..., object]] = {"string": show, "join": self._join, "round": _round}
        filters = {name: known[name] for name in FILTER_NAMES} | own
        self.filters = {name: self._counted(function) for name, function in filters.items()}
        self.filters[EMIT] = self.emit
        self.tests = {name: cast("Mapping[str, Callable[..., bool]]", TESTS)[name] for name in TEST_NAMES}

    # Work

    def begin(self) -> None:
        """Begins a rendering."""
        self._work = 0

    def charge(self, work: int) -> None:
        """Counts work done. Raises LimitError when the budget is spent."""
        self._work += work
        if self._work > WORK_LIMIT:
            raise LimitError(f"rendering takes more than {WORK_LIMIT} steps; is there a loop without end?")

    def _counted(self, function: Callable[..., object]) -> Callable[..., object]:
        """The filter with its work counted: the lengths of its arguments and of its result, which is no iterator."""

        @functools.wraps(function)
        def counted(*args: object, **kwargs: object) -> object:
            self._charge_arguments((*args, *kwargs.values()))
            result = function(*args, **kwargs)
            return self.bounded(cast("Iterator[object]", result)) if isinstance(result, Iterator) else result

        return counted

    def _charge_arguments(self, arguments: Iterable[object]) -> None:
        sized = (item for item in arguments if not isinstance(item, (Undefined, Context)))
        self.charge(1 + sum(len(item) for item in sized if isinstance(item, Sized)))

    def _range(self, *bounds: int | float) -> range:
        for bound in bounds:
            if isinstance(bound, bool) or bound != int(bound):
                raise TypeError(f"range() takes whole numbers, not {show(bound)}")
        numbers = range(*(int(bound) for bound in bounds))
        if len(numbers) > MAX_ITEMS:
            raise LimitError(f"range() gives {len(numbers)} numbers, more than {MAX_ITEMS}")
        return numbers

    def _join(self, items: Iterable[object], separator: str = "") -> str:
        texts = [show(item) for item in self.bounded(items)]
        self.charge(sum(map(len, texts)) + len(texts) * len(separator))
        return separator.join(texts)

    # Calls that `Hooks` puts into the templates

    @pass_context  # with its context a filter is never computed while a template is compiled
    def emit(self, _context: Context, value: object, name: str, line: int, exact: bool) -> Piece:
        """A piece of output."""
        text = show(value)
        self.charge(_CALL + len(text))
        return Piece.of(text, name, line, exact)

    def spend(self, work: int) -> str:
        """One round of a loop, or one call of a macro, with as much work as its body has parts."""
        self.charge(work)
        return ""

    def bounded(self, items: Iterable[object]) -> list[object]:
        """The items of a loop, at most MAX_ITEMS."""
        result = list(items)
        self.charge(1 + len(result))
        return result

    def sized(self, value: object) -> object:
        """A new list, tuple or mapping; the size counts all that is in it, so that nesting cannot multiply it."""
        waiting = [value]
        while waiting:
            item = waiting.pop()
            self.charge(4 + len(item) // 64 if isinstance(item, str) else 4)
            if isinstance(item, Mapping):
                waiting.extend(cast("Mapping[object, object]", item).values())
            elif isinstance(item, (list, tuple)):
                waiting.extend(cast("list[object]", item))
        return value

    def tilde(self, *values: object) -> str:
        """The operator `~`."""
        texts = [show(value) for value in values]
        self.charge(sum(map(len, texts)))
        return "".join(texts)

    def _tokenize(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> TokenStream:
        stream = super()._tokenize(source, name, filename, state)
        return TokenStream(_few(stream, name), name, filename)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        self.sources[name or ""] = source
        tree = super()._parse(source, name, filename)
        Hooks(name or "").visit(tree)
        tree.set_environment(self)
        return tree

    # Operations that a template may use

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        """Arithmetic. An exact division stays an integer; results are numbers of bounded size."""
        del context
        self._charge_arguments((left, right))
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            return left + right
        if operator == "+" and isinstance(left, list) and isinstance(right, list):
            return self.sized(cast("list[object]", left) + cast("list[object]", right))
        numbers = [number(operator, operand) for operand in cast("tuple[object, ...]", (left, right))]
        return arithmetic(operator, *numbers)

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        """Only loops, name spaces, imported templates and mappings have attributes."""
        if not super().is_safe_attribute(obj, attr, value):
            return False
        if isinstance(obj, dict):
            return attr in _MAPPING_METHODS
        return isinstance(obj, (LoopContext, Namespace, TemplateModule))

    def wrap_str_format(self, value: object) -> None:
        """No `"…".format`: `is_safe_attribute` refuses it like the other methods of texts."""
        del value

    def call(__self, __context: Context, __obj: object, *args: object, **kwargs: object) -> object:
        """Calls a function or macro, and counts it."""
        __self.charge(_CALL)
        __self._charge_arguments((*args, *kwargs.values()))
        return super().call(__context, __obj, *args, **kwargs)

    def get_template(
        self,
        name: str | Template,
        parent: str | None = None,
        globals: MutableMapping[str, object] | None = None,
    ) -> Template:
        """Loads an included template, and counts it."""
        self.charge(1000)
        return super().get_template(name, parent, globals)


def _few(stream: TokenStream, name: str | None) -> Iterator[Token]:
    """The tokens of a template. Raises TemplateSyntaxError for too many, and for numbers that are too long."""
    line = 1
    try:
        for count, token in enumerate(stream):
            line = token.lineno
            if count >= MAX_TOKENS:
                reason = f"the template has more than {MAX_TOKENS} words and signs between its tags"
                raise TemplateSyntaxError(reason, line, name, name)
            if isinstance(token.value, float) and not math.isfinite(token.value):
                raise TemplateSyntaxError("this number is too large", line, name, name)
            yield token
    except ValueError:  # of int(), which refuses thousands of digits
        raise TemplateSyntaxError("this number is too long", line, name, name) from None


def _round(value: object, precision: object = 0, method: object = "common") -> object:
    """Jinja's filter, for as many digits as a float can have."""
    if not isinstance(precision, int) or not -_MAX_DIGITS <= precision <= _MAX_DIGITS:
        raise ValueError(f"round() takes a whole number of digits from -{_MAX_DIGITS} to {_MAX_DIGITS}")
    return cast("Mapping[str, Callable[..., object]]", FILTERS)["round"](value, precision, method)


_MAX_DIGITS = 300
