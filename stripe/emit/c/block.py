"""Blocks as loops: opens the points of a block as planned, declares its allocations, and emits its statements."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace

from stripe.emit.c.dialect import Dialect
from stripe.emit.c.dots import DotWriter
from stripe.emit.c.function import THREADS, CFunction, FunctionText, normal_form
from stripe.emit.c.gcc_hazards import GccHazards, carries_sums
from stripe.emit.c.helpers import Helpers
from stripe.emit.c.names import sanitize_comment
from stripe.emit.c.options import COptions
from stripe.emit.c.registers import declare_registers
from stripe.emit.c.specials import emit_special
from stripe.emit.c.statements import emit_statement, live_statements
from stripe.emit.c.storage import Storage
from stripe.emit.c.tiles import TileWriter
from stripe.emit.c.transposes import write_transpose
from stripe.emit.c.writer import Writer
from stripe.emit.loops.accumulators import Accumulator
from stripe.emit.loops.hints import SimdHint
from stripe.emit.loops.memory import LocationMemory, due_fills
from stripe.emit.loops.plan import BlockPlan, plan_block
from stripe.emit.loops.products import products
from stripe.emit.loops.scope import CodeScope, Names
from stripe.emit.loops.tiles import DotTile
from stripe.ir import Block, Refinement, Special

_DEEPEST = 24
"""Indentation at which a block goes into a function of its own: compilers limit how deep braces nest."""


class BlockEmitter:
    """Emits the blocks of one file; collects its functions, each before those that call it."""

    def __init__(
        self, options: COptions, dialect: Dialect, names: Names, arenas: Mapping[str, LocationMemory]
    ) -> None:
        self.options = options
        self.dialect = dialect
        self.helpers = Helpers(dialect)
        self.functions: list[CFunction] = []
        self.storage = Storage(options, arenas)
        self.uses_threads = False
        self.kernels = 0
        self._function_names = names
        self._names_of_forms: dict[str, str] = {}

    def writer(self, scope: CodeScope) -> Writer:
        """A writer into a new function."""
        return Writer(self.dialect, self.helpers, scope, FunctionText(self.dialect))

    def entry(self, block: Block, writer: Writer) -> None:
        """Emits the statements of the entry `block`, whose refinements are in scope."""
        self._statements(block, {}, writer, depth=0)

    def _statements(
        self, block: Block, accumulators: Mapping[int, Accumulator], writer: Writer, *, depth: int
    ) -> None:
        """Emits the statements at one point of `block`, which has `depth` blocks around it."""
        live, summed_products = live_statements(block), products(block)
        for number, statement in enumerate(block.statements):
            for fill in due_fills(statement, writer.scope):
                writer.fill(*fill)
            if isinstance(statement, Block):
                self._block(statement, writer, depth=depth + 1)
            elif isinstance(statement, Special):
                self._special(statement, writer)
            elif number in live:
                emit_statement(statement, block, accumulators.get(number), summed_products, writer)

    def _special(self, special: Special, writer: Writer) -> None:
        """Emits a special. It reads all of its inputs before it writes, so that those are copied that share memory with
        an output.
        """
        areas = writer.scope.areas
        outputs, inputs = ([areas[name] for name in side] for side in (special.outputs, special.inputs))
        shared = [any(area.pointer.may_alias(out.pointer) for out in outputs) for area in inputs]
        if not any(shared):
            emit_special(special, outputs, inputs, writer)
            return
        with ExitStack() as stack:
            stack.enter_context(writer.function.braces(""))
            inner = writer.at(replace(writer.scope, names=writer.scope.names.child()))
            for number, (name, area) in enumerate(zip(special.inputs, inputs, strict=True)):
                if shared[number]:
                    copy = Refinement.alloc(f"{name}_before", area.pointer.dtype, area.sizes)
                    inputs[number] = self.storage.scratch(copy, inner, stack)
                    inner.copy(inputs[number], area)
            emit_special(special, outputs, inputs, inner)

    def _block(self, block: Block, writer: Writer, *, depth: int) -> None:
        """Emits `block` in place when it is a main of blocks alone, else as a function of its own when it is main or a
        kernel of main, or when the nesting gets too deep: the options of gcc are those of a function.
        """
        if depth == 1 and block.points == 1 and all(isinstance(s, Block) for s in block.statements):
            self._loops(block, writer, depth, bare=True)
        elif not block.outputs:
            writer.line(f"// {sanitize_comment(block.name or 'a block')} writes nothing")
        elif depth > 2 and writer.function.indent <= _DEEPEST:
            self._loops(block, writer, depth, bare=False)
        else:
            sources = {ref.source for ref in block.refinements if not ref.is_alloc}
            memory = {name: writer.scope.areas[name].pointer.name for name in sources}
            inner = writer.new_function(writer.scope, GccHazards.of(block, memory))
            self._loops(block, inner, depth, bare=True)
            name = self._finish(inner.function, block.name, writer.scope, _comment_lines(block))
            writer.line(inner.function.call(name, writer.function))
        if depth == 2 and self.options.profile:
            writer.line(f"st_kernel_done({self.kernels});")
            self.kernels += 1

    def _finish(self, function: FunctionText, wanted: str, scope: CodeScope, comments: list[str]) -> str:
        """Makes a C function of `function`, named like `wanted`; returns its name."""
        self.helpers.need("function")
        form = ""
        if self.dialect.shares_functions:
            form = normal_form(function.definition(""), self.dialect.identifier)
            if known := self._names_of_forms.get(form):
                return known
        name = self._function_names.take(wanted or "block")
        while name in scope.names:  # a variable where the function is called
            name = self._function_names.take(wanted or "block")
        if form:
            self._names_of_forms[form] = name
        else:
            scope.names.take(name)
        self.functions.append(CFunction(name, comments, function.definition(name)))
        return name

    def _loops(self, block: Block, outer: Writer, depth: int, *, bare: bool) -> None:
        """Emits `block` into the function of `outer`, whose scope is that around the block; `bare` without comments and
        braces, where it is alone in its function.
        """
        plan = plan_block(block, outer.scope, threads=self.options.openmp, reorder=self.options.reorder)
        writer = outer.at(plan.scope)
        writer.function.declare(*(loop.var for loop in plan.loops))
        for line in () if bare else _comment_lines(block):
            writer.line(line)
        if plan.empty:
            writer.line("// no point satisfies the constraints")
            return
        with ExitStack() as stack:
            if plan.guards:
                stack.enter_context(writer.function.braces(f"if ({writer.condition(plan.guards)})"))
            elif not bare and plan.declares_first:
                stack.enter_context(writer.function.braces(""))
            if plan.parallel:
                self._parallel(plan, writer, depth)
            else:
                self._nested(plan, 0, writer, depth)

    def _parallel(self, plan: BlockPlan, writer: Writer, depth: int) -> None:
        """The parallel loop. Each point of it is a call of a function, so that `restrict` holds inside it."""
        assert all(accumulator.level >= plan.parallel for accumulator in plan.accumulators.values())
        loops = plan.loops[: plan.parallel]
        lines, heads = self.dialect.parallel([(loop.var, *writer.bounds(loop)) for loop in loops])
        writer.function.raw(*lines)
        writer.function.has_loops = self.uses_threads = True
        scope, outer = replace(plan.scope, private=True, workspace=0), writer.function
        inner = writer.new_function(scope, replace(outer.hazards))
        with ExitStack() as stack:
            for head in heads:
                stack.enter_context(writer.function.braces(head))
            with ExitStack() as inside:
                if loops[-1].guards:
                    condition = inner.condition(loops[-1].guards)
                    inside.enter_context(inner.function.braces(f"if ({condition})"))
                self._nested(plan, plan.parallel, inner, depth)
            inner.function.declare(*(loop.var for loop in plan.loops[plan.parallel :]))
            name = self._finish(inner.function, f"{plan.block.name or 'block'}_point", plan.scope, [])
            private = f"{THREADS} + ({self.dialect.size_type}){self.dialect.thread} * ST_THREAD_BYTES"
            writer.line(inner.function.call(name, writer.function, private))

    def _nested(self, plan: BlockPlan, first: int, writer: Writer, depth: int) -> None:
        """The loops from number `first` in, and the statements at a point."""
        kind = DotWriter if isinstance(plan.tile, DotTile) else TileWriter
        tile = kind(plan, plan.tile, writer) if plan.tile else None
        if carries_sums(plan) and kind is not DotWriter:
            writer.function.hazards.has_several_sums = True
        with ExitStack() as stack:
            last = len(plan.loops) - (2 if plan.transpose else 0)
            for level in range(first, plan.tile.level if plan.tile else last):
                loop = plan.loops[level]
                if tile:
                    tile.open_accumulators(level, stack)
                self._open_accumulators(plan, level, writer, stack)
                hint = self.dialect.hint(plan.hints[level])
                if isinstance(plan.hints[level], SimdHint):
                    writer.function.hints[len(writer.function.lines)] = hint
                else:
                    writer.function.raw(*hint)
                bounds = writer.bounds(loop)
                stack.enter_context(writer.function.loop(loop.var, *bounds, is_short=plan.is_short(level)))
                if loop.guards:
                    stack.enter_context(writer.function.braces(f"if ({writer.condition(loop.guards)})"))
            if tile:
                tile.open_accumulators(tile.tile.level, stack)
                tile.statements()
                return
            if plan.transpose:
                write_transpose(plan.transpose, writer)
                return
            inner = writer.at(replace(writer.scope, areas=dict(writer.scope.areas)))
            # Blocks inside share the variables of buffers in registers, unless they are functions of their own.
            in_place = depth > 1 and writer.function.indent <= _DEEPEST
            held = declare_registers(plan.block, inner, self.options) if in_place else ()
            others = [ref for ref in plan.block.allocs if ref.name not in held]
            self.storage.allocate(others, plan.block, inner, stack)
            self._statements(plan.block, plan.accumulators, inner, depth=depth)

    @staticmethod
    def _open_accumulators(plan: BlockPlan, level: int, writer: Writer, stack: ExitStack) -> None:
        """Declares the accumulators of a loop; their values go back to memory when `stack` unwinds to here."""
        opened = [accumulator for accumulator in plan.accumulators.values() if accumulator.level == level]
        if any(accumulator.guarded for accumulator in opened):
            loops = [loop for loop in plan.loops[level:] if not loop.is_plain]
            tests = (" < ".join(writer.bounds(loop)) for loop in loops)
            stack.enter_context(writer.function.braces(f"if ({' && '.join(tests)})"))
        for accumulator in opened:
            dtype = accumulator.area.pointer.dtype
            element = writer.element(accumulator.area, write=True)
            value = writer.loaded(element, dtype)
            writer.line(f"{writer.dialect.scalar_type(dtype)} {accumulator.name} = {value};")
            stack.callback(writer.line, f"{element} = {writer.stored(accumulator.name, dtype)};")


def _comment_lines(block: Block) -> list[str]:
    """The name with the tags, and the comments of a block, each behind `//`."""
    title = " ".join([block.name or "block", *(f"#{word}" for word in block.tags)])
    texts = [title, *block.comments] if block.name or block.tags else list(block.comments)
    return [f"// {text}" for text in map(sanitize_comment, texts) if text]
