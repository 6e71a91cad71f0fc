"""Random pass lists from every registered pass: option values follow each pass's JSON Schema, words the program."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import permutations
from typing import TypeAlias, cast

from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from stripe.config.document import parse_document
from stripe.config.files import find_file, shipped
from stripe.hw.schema import HardwareModel
from stripe.ir import FIELD_WORDS, ConfigError, Program, StripeError, walk
from stripe.passes.registry import find_pass, pass_names
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.fault import InternalFault
from stripe.pipeline.files import load_pass_list
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import entry_json, parse_passes, read_pass_list
from tests.support.index_maps import blocked_maps

Entry: TypeAlias = dict[str, JsonValue]
"""An entry of a pass list, as JSON."""
Schema: TypeAlias = dict[str, JsonValue]

NEW_TAGS = ("outer", "inner", "tagged")
TRIES = 5
NUMBERS = (0, 1, 1, 2, 2, 3, 4, 5, 7, 8, 16, 64, 1024)
TILED: tuple[Entry, ...] = (
    {
        "name": "tiles",
        "autotile": {
            "reqs": ["kernel"],
            "max_total_size": 96,
            "outer_set": ["outer"],
            "inner_set": ["inner"],
        },
    },
)
FUSED: tuple[Entry, ...] = (
    {
        "name": "fuse",
        "fusion": {"a_reqs": ["kernel"], "b_reqs": ["kernel"], "fused_set": ["kernel", "outer"]},
    },
)


def preparations(hardware: HardwareModel) -> list[tuple[Entry, ...]]:
    """What many passes ask for: a located program, blocks of tiles, local buffers."""
    memory = next(iter(hardware.mem_units))
    everywhere: tuple[Entry, ...] = (
        {"name": "program_memory", "locate_memory": {"reqs": ["program"], "loc": {"name": memory}}},
        {"name": "main_memory", "locate_recursive": {"reqs": ["main"], "loc": {"name": memory}}},
    )
    kernels: list[Entry] = [
        {"name": "all_kernels", "locate_block": {"reqs": ["kernel"], "loc": {"name": unit}}}
        for unit in hardware.exec_units
    ]
    located = [(entry, *everywhere) for entry in kernels]
    return [*located, TILED, FUSED, (*TILED, *FUSED), *_examples()]


@cache
def _examples() -> tuple[tuple[Entry, ...], ...]:
    """The entries of the examples of passes, each with those before it; units that the machine lacks make a refusal."""
    lists = (
        ",".join([*find_pass(name).example.after, f"{name}{{{find_pass(name).example.options}}}"])
        for name in pass_names()
    )
    return tuple(tuple(entry_json(entry) for entry in parse_passes(text)) for text in lists)


@dataclass(frozen=True, slots=True)
class Words:
    """The words that options may be made of, from the program and from the machine."""

    tags: tuple[str, ...]
    ref_tags: tuple[str, ...]
    indices: tuple[str, ...]
    refs: tuple[str, ...]
    exec_units: tuple[str, ...]
    memories: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def units(self) -> tuple[str, ...]:
        return (*self.memories, *self.exec_units, *self.others)

    @staticmethod
    def of(program: Program, hardware: HardwareModel) -> Words:
        tags: dict[str, None] = dict.fromkeys(("kernel", "all", "main", "program"))
        indices: dict[str, None] = {}
        used: dict[str, None] = {}
        refs: dict[str, None] = {}
        ref_tags: dict[str, None] = dict.fromkeys(("tmp", "cached"))
        for _, block in walk(program.entry):
            tags.update(dict.fromkeys(block.words))
            indices.update(dict.fromkeys(index.name for index in block.indices))
            refs.update(dict.fromkeys(ref.name for ref in block.refinements))
            ref_tags.update(dict.fromkeys(tag for ref in block.refinements for tag in ref.words))
            used.update(dict.fromkeys(device.name for device in block.location.devices))
            for ref in block.refinements:
                used.update(dict.fromkeys(device.name for device in ref.location.devices))
        kinds = (hardware.exec_units, hardware.mem_units, hardware.tx_units)
        units = [
            (*(name for name in used if name in kind), *kind) for kind in kinds
        ]  # those in use twice as often
        return Words((*tags, *NEW_TAGS), tuple(ref_tags), tuple(indices) or ("i",), tuple(refs), *units)


@st.composite
def pass_lists(draw: st.DrawFn, program: Program, hardware: HardwareModel) -> tuple[Entry, ...]:
    """One to six entries; sometimes a part of a shipped list among them, or what locates everything. The words of each
    entry are those of the program that the entries before it make, so that passes meet the tags, locations and views
    that others set.
    """

    def part(now: Program) -> list[Entry]:
        kind = draw(st.integers(0, 9))
        if kind == 0:
            listed = draw(st.sampled_from(_shipped_entries(hardware.model_dump_json())))
            start = draw(st.integers(0, len(listed) - 1))
            return listed[start : start + draw(st.integers(1, len(listed)))]
        if kind <= 2:
            return list(draw(st.sampled_from(preparations(hardware))))
        return draw(entries_that_change(now, hardware))

    return grown(program, hardware, [part] * draw(st.integers(1, 6)))


@st.composite
def changed_lists(
    draw: st.DrawFn, passes: Sequence[Entry], program: Program, hardware: HardwareModel
) -> tuple[Entry, ...]:
    """The entries, some of them left out or with options drawn anew, and passes drawn at random between and after."""

    def part(entry: Entry, now: Program) -> list[Entry]:
        kind = draw(st.integers(0, 7))
        if kind <= 2:
            return [draw(changed_entries(entry, Words.of(now, hardware)))]
        if kind == 3:
            return [*draw(entries_that_change(now, hardware)), entry]
        return [] if kind == 4 else [entry]

    def more(now: Program) -> list[Entry]:
        return draw(entries_that_change(now, hardware))

    parts = [partial(part, entry) for entry in passes]
    return grown(program, hardware, [*parts, *[more] * draw(st.integers(0, 2))])


def grown(
    program: Program, hardware: HardwareModel, parts: Iterable[Callable[[Program], list[Entry]]]
) -> tuple[Entry, ...]:
    """The entries of all parts, each of which is given what those before it made of the program; after a crash no
    more.
    """
    entries: list[Entry] = []
    for part in parts:
        found = part(program)
        entries += found
        result = run_entries(program, found, hardware)
        if result is None:
            break
        program = result
    return tuple(entries)


@st.composite
def entries_that_change(draw: st.DrawFn, program: Program, hardware: HardwareModel) -> list[Entry]:
    """An entry with one of all passes that changes the program, if one is found within a few."""
    name = draw(st.sampled_from(pass_names()))
    words = Words.of(program, hardware)
    found: list[Entry] = []
    for _ in range(TRIES):
        found = draw(entries_of(name, words))
        if run_entries(program, found, hardware) is not program:
            break
    return found


def run_entries(program: Program, entries: Sequence[Entry], hardware: HardwareModel) -> Program | None:
    """The program after those of the entries that do not refuse; None after a crash, which the check of the case meets
    again and reports.
    """
    for item in entries:
        try:
            program = PassManager((read_entry(item),), hardware).run(program)
        except StripeError:
            continue
        except InternalFault:
            return None
    return program


def read_entry(item: Entry) -> PassEntry:
    (entry,) = read_pass_list(parse_document(json.dumps({"passes": [item]}), "fuzz")).entries
    return entry


@cache
def _shipped_entries(model: str) -> list[list[Entry]]:
    """The entries of the shipped pass lists that suit the machine."""
    parameters = HardwareModel.model_validate_json(model).parameters
    found: list[list[Entry]] = []
    for name in shipped("optconfigs"):
        try:
            listed = load_pass_list(find_file(name, "optconfigs"), parameters)
        except ConfigError:
            continue
        found.append([entry_json(entry) for entry in listed.entries])
    return found


@st.composite
def entries_of(draw: st.DrawFn, name: str, words: Words) -> list[Entry]:
    """An entry with the pass `name`; none when the options drawn do not go together."""
    options = draw(_options_of(name, words))
    return [{"name": f"fuzz_{name}", name: options}] if _go_together(name, options) else []


@st.composite
def changed_entries(draw: st.DrawFn, entry: Entry, words: Words) -> Entry:
    """The entry with some of its options drawn anew; itself where they do not go together."""
    name = pass_of(entry)
    given, other = cast("Entry", entry[name]), draw(_options_of(name, words))
    mixed: Entry = {}
    for key in sorted({*given, *other}):
        source = given if draw(st.integers(0, 2)) else other
        if key in source:
            mixed[key] = source[key]
    return {**entry, name: mixed} if _go_together(name, mixed) else entry


def pass_of(entry: Entry) -> str:
    """The name of its pass."""
    return next(key for key in entry if key != "name")


@cache
def _schema(name: str) -> Schema:
    return cast("Schema", find_pass(name).model_json_schema())


def _options_of(name: str, words: Words) -> st.SearchStrategy[Entry]:
    schema = _schema(name)
    return _object(schema, cast("dict[str, Schema]", schema.get("$defs", {})), words)


def _go_together(name: str, options: Entry) -> bool:
    try:
        find_pass(name).model_validate_json(json.dumps(options))
    except ValidationError:
        return False
    return True


@st.composite
def _object(draw: st.DrawFn, schema: Schema, definitions: dict[str, Schema], words: Words) -> Schema:
    """What is required, and of the rest few."""
    required = cast("list[str]", schema.get("required", []))
    properties = cast("dict[str, Schema]", schema.get("properties", {}))
    chance = draw(st.sampled_from([1, 2, 4, 8]))
    result: Schema = {}
    for key, field in properties.items():
        if key in required or draw(st.integers(0, chance)) == 0:
            result[key] = draw(_value(key, field, definitions, words))
    return result


def _value(
    key: str, schema: Schema, definitions: dict[str, Schema], words: Words
) -> st.SearchStrategy[JsonValue]:
    """Values that fit the schema of the option `key`."""
    if "$ref" in schema:
        target = definitions[str(schema["$ref"]).rpartition("/")[2]]
        return _value(key, {**target, **{k: v for k, v in schema.items() if k != "$ref"}}, definitions, words)
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(cast("list[JsonValue]", schema["enum"]))
    for combined in ("anyOf", "oneOf", "allOf"):
        if combined in schema:
            shared = {k: v for k, v in schema.items() if k in ("description", "title")}
            choices = [
                {**shared, **cast("Schema", part)} for part in cast("list[JsonValue]", schema[combined])
            ]
            return st.one_of([_value(key, choice, definitions, words) for choice in choices])
    return _typed_value(key, schema, definitions, words)


def _typed_value(
    key: str, schema: Schema, definitions: dict[str, Schema], words: Words
) -> st.SearchStrategy[JsonValue]:
    """Values of the schema's `type`."""
    match schema.get("type"):
        case "boolean":
            return st.booleans()
        case "integer":
            return _numbers(schema).map(int)
        case "number":
            return st.one_of(
                _numbers(schema), _numbers(schema).map(lambda n: n / 2 if _fits(n / 2, schema) else n)
            )
        case "string" if key in ("map", "layout"):
            return st.lists(st.integers(1, 9), min_size=1, max_size=4).flatmap(blocked_maps).map(str)
        case "string":
            return _strings(key, str(schema.get("description", "")), words)
        case "array":
            items = cast("Schema", schema.get("items", {}))
            item = {"description": schema.get("description", ""), **items}
            least = cast("int", schema.get("minItems", 0))
            most = cast("int", schema.get("maxItems", max(3, least)))
            values = _value(key, item, definitions, words)
            if items.get("type") == "integer" and draws_orders(schema):
                orders = [list[JsonValue](order) for rank in (2, 3) for order in permutations(range(rank))]
                return st.sampled_from(orders) | st.lists(values, min_size=least, max_size=min(most, 3))
            one = st.lists(values, min_size=max(least, min(1, most)), max_size=max(least, min(1, most)))
            return st.one_of(one, one, one, st.lists(values, min_size=least, max_size=min(most, 3)))
        case "object" if "properties" in schema:
            return _object(schema, definitions, words)
        case "object":
            values = cast("Schema", schema.get("additionalProperties", {}))
            names = draw_keys(words)
            return st.dictionaries(names, _value(key, values, definitions, words), max_size=2)
        case _:
            return st.none()


def draws_orders(schema: Schema) -> bool:
    """Whether a list of numbers is an order of dimensions, of which random numbers are nearly never one."""
    return "order" in str(schema.get("description", "")) or "dimension" in str(schema.get("description", ""))


def draw_keys(words: Words) -> st.SearchStrategy[str]:
    """Keys of objects: indices, or numbers of dimensions; which of them a pass takes its model says."""
    return st.sampled_from(["0", "1", "2"]) | st.sampled_from(words.indices)


def _numbers(schema: Schema) -> st.SearchStrategy[float]:
    """Small numbers between the schema's limits, the limits themselves among them."""
    low = schema.get("minimum")
    fitting: list[float] = [number for number in (*NUMBERS, -1) if _fits(number, schema)]
    return st.sampled_from(fitting or [cast("float", low if low is not None else schema.get("maximum", 0))])


def _fits(number: float, schema: Schema) -> bool:
    low, high = cast("float", schema.get("minimum", number)), cast("float", schema.get("maximum", number))
    above = cast("float", schema.get("exclusiveMinimum", number - 1))
    below = cast("float", schema.get("exclusiveMaximum", number + 1))
    return low <= number <= high and above < number < below


def _strings(key: str, description: str, words: Words) -> st.SearchStrategy[JsonValue]:
    """Words of the kind that the option is about, as its name and its description say."""
    about = f"{key} {description}".lower()
    if key.endswith("set"):
        return st.sampled_from(NEW_TAGS) | st.sampled_from(
            [tag for tag in words.tags if tag not in FIELD_WORDS]
        )
    if "tag" in about or "reqs" in about:
        if key.startswith(("ref", "alloc")) or "buffer" in about:
            return st.sampled_from(words.ref_tags)
        return st.one_of(*[st.sampled_from(words.tags[:n]) for n in (1, 1, 2, len(words.tags))])
    if key == "unit" and "number" in about:
        return st.sampled_from([*words.indices, *(f"{i} mod 2" for i in words.indices), "0", "1"])
    if "execution unit" in about:
        return st.sampled_from(words.exec_units)
    if key in ("memory", "mem_loc") or ("memory" in about and "unit" not in about):
        return st.sampled_from(words.memories)
    if any(word in about for word in ("memory", "unit", "location", "machine", "hardware")):
        return st.sampled_from(words.units)
    if "view" in about or "buffer" in about or key.startswith("ref"):
        return st.sampled_from(words.refs)
    if "ind" in about:
        return st.sampled_from(words.indices)
    return st.sampled_from([*words.tags, *words.units, *words.refs, *words.indices])
