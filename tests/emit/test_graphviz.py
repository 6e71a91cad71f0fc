"""Pictures of programs name every block."""

from __future__ import annotations

from stripe.emit.graphviz import block_graph
from stripe.ir import parse_program, walk
from tests.support.programs import source


def test_the_picture_has_every_block_and_quotes_names() -> None:
    program = parse_program(source("everything"))
    text = block_graph(program)
    assert text.count("{") == text.count("}")
    for path, _ in walk(program.entry):
        assert f'"cluster_{".".join(map(str, path))}"' in text
    assert '"0.0.1" [label="gather", shape=oval];' in text
    assert '"0.0.D" -> "0.0.1";' in text
    assert '"0.0.1" -> "0.0.G";' in text
