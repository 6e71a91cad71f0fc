"""The pass `pattern`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field, field_validator

from stripe.ir import (
    Block,
    ConfigError,
    Program,
    StripeError,
    Tags,
    TagValue,
    did_you_mean,
    is_tag,
    rewrite_blocks,
    with_entry,
)
from stripe.ir.frozen import replace
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Refusal, Reqs, TagSet
from stripe.passes.pattern.contraction_kinds import classify
from stripe.passes.pattern.terms import (
    Term,
    find,
    parse_term,
    variables,
)


class Pattern(Pass):
    """Recognises blocks by their structure, and tags them; later passes choose their blocks by these tags.

    `{ "reqs": ["contraction"] }`:

        #contraction block [ci:4, co:8, i:3, j:3, x:9, y:8] (     #contraction #conv #conv_3x3 #dilation="1x1"
            in I[2*y + j, 2*x + i, ci] …                     =>   #stride="2x2" #strided #window="3x3" block […] (
            in K[j, i, ci, co] …
            out O[y, x, co]:add …

    Without a `pattern` blocks are classified: `matmul` (with `batched`, or `matvec`, `dot`), `conv` (with
    `conv_3x3` and so on, `strided`, `dilated`, `depthwise`, `grouped`, `conv_transposed`), `pooling` (`max_pool`,
    `sum_pool` …), `reduction`; window, stride, dilation and groups become attributes.

    With a `pattern`, blocks that it matches get the tags `set_tags`, the attributes `set_vars`, tags on indices:
    `{ "pattern": "block({ref(in, {dim(0, {term(1, M)}, _, _) | _}) | _}, {idx(M, SIZE) | _})", "set_vars":
    { "rows": "SIZE" } }`. `stripe.passes.pattern.terms` describes the language.
    """

    pass_name: ClassVar[str] = "pattern"
    group: ClassVar[PassGroup] = PassGroup.PATTERN
    example: ClassVar[PassExample] = PassExample(
        'reqs=[all],pattern="block({ref(in, {dim(0, {term(1, K)}, _, _) | _}) | _}, {idx(K,'
        ' N) | _})",set_tags=[found]'
    )
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("contraction",)
    pattern: str = Field(
        default="", description="the pattern to match; blocks are classified where it is empty"
    )
    set_tags: TagSet = Field(default=(), description="tags of the blocks that the pattern matches")
    set_vars: dict[str, str] = Field(
        default={}, description="attribute: the variable of the pattern that gives its value"
    )
    set_idxs: dict[str, str] = Field(
        default={}, description="tag: the variable of the pattern that names the index to tag"
    )

    @field_validator("pattern")
    @classmethod
    def _is_pattern(cls, text: str) -> str:
        if text:
            try:
                parse_term(text)
            except StripeError as error:
                raise ValueError(error.reason) from error
        return text

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError for an attribute whose variable the pattern does not have."""
        pattern = parse_term(self.pattern) if self.pattern else None
        if pattern is not None:
            known = variables(pattern)
            for name in (*self.set_vars.values(), *self.set_idxs.values()):
                if name not in known:
                    hint = did_you_mean(name, sorted(known), f"it has {', '.join(sorted(known)) or 'none'}")
                    raise ConfigError(f"the pattern has no variable '{name}'", hint=hint)
            for word in (*self.set_vars, *self.set_idxs):
                if not is_tag(word):
                    raise ConfigError(f"'{word}' cannot be a tag")

        def visit(block: Block) -> Block:
            if not block.words.has_all(self.reqs):
                return block
            if pattern is not None:
                return self._matched(block, pattern, context)
            kind = classify(block)
            if isinstance(kind, Refusal):
                context.missed(block, f"not classified: {kind}")
                return block
            return _tagged(block, Tags.of(*kind.tags), kind.values, context)

        return with_entry(program, rewrite_blocks(program.entry, visit))

    def _matched(self, block: Block, pattern: Term, context: PassContext) -> Block:
        bound = find(pattern, block)
        if bound is None:
            context.missed(block, "the pattern does not match")
            return block
        found = {word: bound[name] for word, name in self.set_vars.items() if name in bound}
        values = {word: v if isinstance(v, int | str) else str(v) for word, v in found.items()}
        tagged = _tagged(block, Tags.of(*self.set_tags), values, context)
        marks = [(tag, bound[name]) for tag, name in self.set_idxs.items() if name in bound]
        indices = tuple(
            replace(index, tags=index.tags.add(*(tag for tag, name in marks if name == index.name)))
            for index in tagged.indices
        )
        return tagged if indices == tagged.indices else replace(tagged, indices=indices)


def _tagged(block: Block, tags: Tags, values: Mapping[str, TagValue], context: PassContext) -> Block:
    new = block.tags | tags
    for word, value in values.items():
        new = new.set(word, value)
    words = [*tags, *(f"{word}={value}" for word, value in values.items())]
    context.applied(block, f"matched: {', '.join(words) or 'no tag is asked for'}")
    return block if new == block.tags else replace(block, tags=new)
