"""Every pass, with what it needs before it, on every example: it finds work, and all that it does is proved."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.cli.opt import main as opt
from stripe.passes.registry import BUILTIN

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
EXAMPLES = sorted((ROOT / "examples").glob("*.tile"))

TILES = "autotile{reqs=[contraction],max_total_size=4096,outer_set=[tile],inner_set=[inner]}"
COPIES = "cache{reqs=[tile],mem_loc={name:SRAM},xfer_loc={name:DMA}}"
PLACES = (
    "locate_block{reqs=[kernel],loc={name:DSP}},locate_memory{reqs=[program],loc={name:DRAM}},"
    "locate_memory{reqs=[main],loc={name:DRAM}}"
)
DOT = (
    'stencils=[{"name":"dot","idxs":[{"name":"r","size":4,"outs":[-1],"ins":[-1,0]},'
    '{"name":"c","size":-1,"outs":[0],"ins":[-1,-1]}]}]'
)
PATTERN = 'pattern="block({ref(in, {dim(0, {term(1, K)}, _, _) | _}) | _}, {idx(K, N) | _})"'

BEFORE = {
    "cache": [TILES],
    "locate_inner_block": [TILES],
    "memory_placement": [PLACES, "compute_deps"],
    "prune_indexes": [TILES],
    "prune_refinements": ["fusion,localize,fusion{overlap=keep,max_steps=4}"],
    "register_cache": [TILES, "cache{reqs=[tile],mem_loc={name:SRAM}}"],
    "rewrite_locations": [PLACES],
    "schedule": [PLACES],
    "scalarize": ["fusion,localize"],
    "localize": ["fusion"],
    "peel": [TILES],
    "reduce_constraints": [TILES],
}
"""Entries that a pass has nothing to do without."""

OPTIONS = {
    "autotile": "reqs=[contraction],max_total_size=4096",
    "cache": "reqs=[tile],mem_loc={name:SRAM},xfer_loc={name:DMA}",
    "fix_strides": "alloc_reqs=[tmp]",
    "fusion": "overlap=keep,max_steps=4",
    "layout": "alloc_reqs=[tmp],block={0:4}",
    "locate_block": "reqs=[kernel],loc={name:DSP}",
    "locate_inner_block": "reqs=[tile],loc={name:CONV}",
    "locate_memory": "reqs=[program],loc={name:DRAM}",
    "locate_recursive": "reqs=[program],loc={name:DRAM}",
    "memory_placement": "locs=[{name:DRAM}]",
    "package": "reqs=[kernel],package_set=[packed]",
    "pad": "multiple_of=4",
    "partition": "reqs=[kernel],num_parts=4,set_tags=[parts]",
    "pattern": f"reqs=[all],{PATTERN},set_tags=[found]",
    "peel": "reqs=[tile]",
    "register_cache": "reqs=[tile],local_loc={name:SRAM},register_loc={name:REGS},global_memory_latency=100,"
    "local_memory_latency=50,register_latency=1,register_size=65536,comp_parent_tag=inner",
    "rewrite_locations": 'rewrites=[{prefix:"DSP[*]",target:CONV}]',
    "schedule": "mem_loc={name:SRAM},xfer_loc={name:DMA},mem_KiB=64,num_banks=4",
    "split_reduction": "reqs=[contraction],vector_bytes=16,vectors=1",
    "subgroup": "reqs=[kernel],subgroup_sizes=[8],max_mem=[4096],mem_latency=400,cache_latency=40,cache_width=64,"
    "cache_size=4096,register_loc={name:REGS}",
    "tensorize": f"reqs=[contraction],{DOT}",
    "thread": "reqs=[kernel],threads=4",
    "transpose": "alloc_reqs=[tmp]",
    "unroll": "reqs=[kernel],max_points=64",
    "vectorize": "reqs=[kernel],vector_bytes=16",
}
"""Options of a pass, where it does not do without or should do more."""

MORE = {
    "constant_tensor": ["constant_tensor/fill.stripe"],
    "dce": ["dce/unused.stripe"],
    "reduce_constraints": ["reduce_constraints/exact.stripe"],
    "reorder_blocks": ["reorder_blocks/neighbours.tile"],
}
"""Golden programs for passes that mend what no example has: dead code, constants, an order that keeps blocks apart."""


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_what_a_pass_does_to_the_examples_is_proved(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    entries = [*BEFORE.get(name, []), f"{name}{{{OPTIONS.get(name, '')}}}"]
    changed: list[str] = []
    for example in [*EXAMPLES, *(GOLDEN / more for more in MORE.get(name, []))]:
        arguments = [
            "--passes",
            ",".join(entries),
            "--hw",
            "dsp_conv",
            "--verify",
            "exact",
            "-o",
            "/dev/null",
        ]
        status = opt([str(example), *arguments])
        said = capsys.readouterr().err.splitlines()
        assert status == 0, (example.name, said)
        verdicts = [line for line in said if line.startswith("verify: ")]
        assert [line for line in verdicts if not line.endswith(": equal")] == [], example.name
        if any(line.startswith(f"verify: {name}: ") for line in verdicts):
            changed.append(example.name)
    assert changed, f"{name} found nothing to do in any example"
