"""Blocks into loops: opens the points of a block, declares its allocations, and emits its statements."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from stripe.emit.c.function import THREADS, Function
from stripe.emit.c.helpers import Helpers
from stripe.emit.c.names import Names, sanitize, sanitize_comment
from stripe.emit.c.options import COptions
from stripe.emit.c.pragmas import pragma_lines, tile_lines
from stripe.emit.c.scope import Scope
from stripe.emit.c.statements import StatementEmitter
from stripe.emit.c.storage import Storage
from stripe.emit.loops.affines import c_affine
from stripe.emit.loops.leaf import Accumulator, find_accumulators
from stripe.emit.loops.memory import Arena, is_placed
from stripe.emit.loops.nest import Loop, Nest, plan_nest
from stripe.emit.loops.order import fast_order
from stripe.emit.loops.parallel import PARALLEL_TAGS, enough_items
from stripe.ir import Affine, Block, Index, separating, walk

_DEEPEST = 24
"""Indentation at which a block goes into a function of its own: compilers limit how deep braces nest."""


class Emitter:
    """Emits the blocks of one file; collects its functions, each before those that call it."""

    def __init__(self, options: COptions, names: Names, arenas: dict[str, Arena]) -> None:
        self.options = options
        self.helpers = Helpers()
        self.functions: list[str] = []
        self.storage = Storage(options, self.helpers, arenas)
        self.uses_threads = False
        self._function_names = names

    def block(self, block: Block, outer: Scope, function: Function, *, own: bool = False) -> None:
        """Emits `block` into `function`; as a function of its own if `own`, or when the nesting gets too deep."""
        if not block.outputs:
            function.line(f"// {sanitize_comment(block.name or 'a block')} writes nothing")
            return
        if not own and function.indent <= _DEEPEST:
            self._inline(block, outer, function, bare=False)
            return
        inner = Function()
        self._inline(block, outer, inner, bare=True)
        name = self.finish(inner, block, outer)
        function.line(inner.call(name, function))

    def main(self, block: Block, outer: Scope, function: Function) -> None:
        """Emits a block of the entry into `function`; the blocks inside become functions."""
        self._inline(block, outer, function, bare=True, kernels=True)

    def point(self, block: Block, scope: Scope, function: Function) -> None:
        """Emits the statements of `block` at one point, all its refinements being in `scope` already."""
        statements = StatementEmitter(self.helpers, scope, block, {})
        live = statements.live()
        for number, statement in enumerate(block.statements):
            self.storage.before(statement, scope, function)
            if isinstance(statement, Block):
                self.main(statement, scope, function)
            elif number in live:
                statements.emit(number, statement, function)

    def finish(self, function: Function, block: Block, outer: Scope, comments: bool = True) -> str:
        """Makes a C function of `function`, named after `block`; returns its name."""
        wanted = sanitize(block.name or "block")
        wanted = wanted if wanted.startswith("kernel") else f"kernel_{wanted}"
        name = self._function_names.take(wanted)
        while name in outer.names:  # a variable where the function is called
            name = self._function_names.take(wanted)
        outer.names.take(name)
        head = _comment_lines(block) if comments else []
        self.functions.append("\n".join([*head, f"{function.signature(name)} {{", *function.lines, "}"]))
        return name

    def _inline(
        self, block: Block, outer: Scope, function: Function, *, bare: bool, kernels: bool = False
    ) -> None:
        scope, variables = outer.inside(block)
        order = (fast_order(block, outer) if self.options.reorder else None) or list(variables)
        parallel = self._parallel_indices(block, order, outer)
        order.sort(key=lambda name: name not in parallel)
        ranges = [(variables[name], block.index(name).range) for name in order]
        nest = plan_nest(ranges, [c.affine.subs(scope.indices) for c in block.constraints], outer.intervals)
        scope.intervals = nest.intervals
        function.declare(*(variables[name] for name in order))
        if not bare:
            for line in _comment_lines(block):
                function.line(line)
        if nest.empty:
            function.line("// no point satisfies the constraints")
            return
        for ref in block.refinements:
            if not ref.is_alloc:
                scope.views[ref.name] = scope.view(ref, outer)
        accumulators = find_accumulators(block, scope, nest)
        work = _Work(self, block, scope, nest, accumulators, kernels)
        with ExitStack() as stack:
            if nest.guards:
                stack.enter_context(function.braces(f"if ({work.condition(nest.guards, function)})"))
            elif not bare and (not nest.loops or any(a.level == 0 for a in accumulators.values())):
                stack.enter_context(function.braces(""))
            work.levels(0, function, collapse=work.collapsible(len(parallel)))

    def _parallel_indices(self, block: Block, order: list[str], outer: Scope) -> tuple[str, ...]:
        """The indices over which threads may share the points; none unless asked for, nor where arenas are."""
        if not self.options.openmp or outer.private or not block.tags.has_any(PARALLEL_TAGS):
            return ()
        if any(is_placed(ref) for _, inner in walk(block) for ref in inner.refinements):
            return ()
        return enough_items(block, separating(block), order)


class _Work:
    """One block that is being emitted: its loops from the outside in, then what happens at a point."""

    def __init__(
        self,
        emitter: Emitter,
        block: Block,
        scope: Scope,
        nest: Nest,
        accumulators: dict[int, Accumulator],
        kernels: bool,
    ) -> None:
        self.emitter = emitter
        self.block = block
        self.scope = scope
        self.nest = nest
        self.accumulators = accumulators
        self.kernels = kernels

    def collapsible(self, parallel: int) -> int:
        """How many of the first `parallel` loops make one OpenMP loop: constant bounds inside, no test between."""
        count = min(parallel, 1)
        while count < parallel and not self.nest.loops[count - 1].guards and self._is_rectangular(count):
            count += 1
        return count

    def _is_rectangular(self, place: int) -> bool:
        loop = self.nest.loops[place]
        outer = {other.var for other in self.nest.loops[:place]}
        return not any(bound.names() & outer for bound in (*loop.lower, *loop.upper))

    def levels(self, first: int, function: Function, collapse: int = 0) -> None:
        """Emits the loops from number `first` in; the first `collapse` of all as one OpenMP loop."""
        loops = self.nest.loops
        with ExitStack() as stack:
            for level in range(first, len(loops)):
                self._open_accumulators(level, function, stack)
                if level == 0 and collapse:
                    self._parallel_pragma(collapse, function)
                elif level >= collapse:
                    for line in self._hints(level):
                        function.raw(line)
                stack.enter_context(function.braces(self._head(loops[level], function)))
                if loops[level].guards and level != collapse - 1:
                    condition = self.condition(loops[level].guards, function)
                    stack.enter_context(function.braces(f"if ({condition})"))
                if collapse and level == collapse - 1:
                    self._parallel_body(collapse, function)
                    return
            self._point(function, stack)

    def _open_accumulators(self, level: int, function: Function, stack: ExitStack) -> None:
        opened = [accumulator for accumulator in self.accumulators.values() if accumulator.level == level]
        if any(accumulator.guarded for accumulator in opened):
            loops = [loop for loop in self.nest.loops[level:] if not loop.is_plain]
            tests = (" < ".join(self._bounds(loop, function)) for loop in loops)
            stack.enter_context(function.braces(f"if ({' && '.join(tests)})"))
        for accumulator in opened:
            accumulator.open(function, self.scope, self.emitter.helpers, stack)

    def _hints(self, level: int) -> list[str]:
        """Preprocessor lines for loop number `level`."""
        loops = [(self._index(loop.var), loop) for loop in self.nest.loops]
        innermost = level == len(loops) - 1
        return (
            pragma_lines(self.block, loops[level][0]) if innermost else tile_lines(self.block, loops, level)
        )

    def _index(self, var: str) -> Index:
        """The index of the block that the loop over `var` runs through."""
        return next(i for i in self.block.indices if self.scope.indices[i.name].single_name == var)

    def _bounds(self, loop: Loop, function: Function) -> tuple[str, str]:
        return self._bound(loop.lower, "max", function), self._bound(loop.upper, "min", function)

    def _head(self, loop: Loop, function: Function) -> str:
        low, high = self._bounds(loop, function)
        return f"for (int64_t {loop.var} = {low}; {loop.var} < {high}; ++{loop.var})"

    def _bound(self, bounds: tuple[Affine, ...], helper: str, function: Function) -> str:
        texts = [self._text(bound, function) for bound in bounds]
        result = texts[0]
        for text in texts[1:]:
            result = f"{self.emitter.helpers.need(helper)}({result}, {text})"
        return result

    def _text(self, affine: Affine, function: Function) -> str:
        function.use_affine(affine)
        return c_affine(affine, self.scope.intervals, self.emitter.helpers)

    def condition(self, guards: tuple[Affine, ...], function: Function) -> str:
        """`a >= 0 && b >= 0`."""
        return " && ".join(f"{self._text(guard, function)} >= 0" for guard in guards)

    def _parallel_pragma(self, collapse: int, function: Function) -> None:
        clause = f" collapse({collapse})" if collapse > 1 else ""
        function.raw("#ifdef _OPENMP")
        function.raw(f"#pragma omp parallel for{clause} schedule(static)")
        function.raw("#endif")
        self.emitter.uses_threads = True

    def _parallel_body(self, collapse: int, function: Function) -> None:
        """What a thread does at one point of the parallel loop: a function, so that `restrict` holds inside it."""
        inner = Function()
        outside = self.scope
        self.scope = replace(outside, private=True, workspace=0)
        with ExitStack() as stack:
            guards = self.nest.loops[collapse - 1].guards
            if guards:
                stack.enter_context(inner.braces(f"if ({self.condition(guards, inner)})"))
            self.levels(collapse, inner)
        self.scope = outside
        inner.declare(*(loop.var for loop in self.nest.loops[collapse:]))
        name = self.emitter.finish(inner, _renamed(self.block, "point"), outside, comments=False)
        private = f"{THREADS} + (size_t)ST_THREAD * ST_THREAD_BYTES"
        function.line(inner.call(name, function, private))

    def _point(self, function: Function, stack: ExitStack) -> None:
        emitter, block = self.emitter, self.block
        scope = replace(self.scope, views=dict(self.scope.views))
        for ref in block.allocs:
            emitter.storage.allocate(ref, block, scope, function, stack)
        statements = StatementEmitter(emitter.helpers, scope, block, self.accumulators)
        live = statements.live()
        for number, statement in enumerate(block.statements):
            emitter.storage.before(statement, scope, function)
            if isinstance(statement, Block):
                emitter.block(statement, scope, function, own=self.kernels)
            elif number in live:
                statements.emit(number, statement, function)


def _renamed(block: Block, suffix: str) -> Block:
    return replace(block, name=f"{block.name or 'block'}_{suffix}")


def _comment_lines(block: Block) -> list[str]:
    """The name and the comments of a block, each behind `//`."""
    texts = [block.name, *block.comments] if block.name else list(block.comments)
    return [f"// {text}" for text in map(sanitize_comment, texts) if text]
