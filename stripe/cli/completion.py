"""`--completion`: a script for bash, zsh or fish, from the description of a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stripe.cli.option import Option, Spec
from stripe.config.files import shipped
from stripe.emit.targets import TARGETS
from stripe.frontends.registry import languages, references
from stripe.passes.registry import pass_names
from stripe.pipeline.engines import ENGINES

FILES = "files"

_NAMES: dict[str, Callable[[], tuple[str, ...]]] = {
    "passes": pass_names,
    "hwmodels": lambda: shipped("hwmodels"),
    "optconfigs": lambda: shipped("optconfigs"),
    "languages": lambda: tuple(languages()),
    "targets": TARGETS.names,
    "engines": ENGINES.names,
    "references": lambda: ("interp", *references()),
}


def completion(spec: type[Spec], shell: str) -> str:
    """The script. It completes a command with the options of all its subcommands."""
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]
    family = spec.family()
    options = {made.flags: made for member in reversed(family) for _, made in member.options()}
    return "\n".join(write(family[0].prog, list(options.values()))) + "\n"


def _values(made: Option) -> tuple[str, ...]:
    """The values that are proposed; none where any text, or the name of a file, stands."""
    if isinstance(made.complete, tuple):
        return made.complete
    return () if made.complete == FILES else _NAMES[made.complete]()


def _subcommands(options: list[Option]) -> str:
    """The words that the positional argument may be."""
    return " ".join(word for made in options if not made.flags for word in _values(made))


def _takes_files(made: Option) -> bool:
    return made.complete in (FILES, "hwmodels", "optconfigs")


def _bash(prog: str, options: list[Option]) -> Iterator[str]:
    function = f"_{prog.replace('-', '_')}"
    yield f"{function}() {{"
    yield '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"'
    yield '  case "$before" in'
    for made in options:
        if made.flags and made.read is not None and not made.optional:
            files = " -f" if _takes_files(made) else ""
            words = f'{files} -W "{" ".join(_values(made))}"'
            yield f'    {"|".join(made.flags)}) COMPREPLY=($(compgen{words} -- "$word")); return;;'
    yield "  esac"
    flags = " ".join(flag for made in options for flag in made.flags)
    yield f'  [[ "$word" == -* ]] && COMPREPLY=($(compgen -W "{flags}" -- "$word")) \\'
    words = f' -W "{found}"' if (found := _subcommands(options)) else ""
    yield f'    || COMPREPLY=($(compgen -f{words} -- "$word"))'
    yield "}"
    yield f"complete -o filenames -F {function} {prog}"


def _zsh(prog: str, options: list[Option]) -> Iterator[str]:
    yield f"#compdef {prog}"
    yield "_arguments \\"
    for made in options:
        text = _quoted(made.help.replace("[", "(").replace("]", ")").replace(":", ","))
        action = ":value:"
        if made.complete:
            values = " ".join(_values(made))
            action = f":value:{'_files' if _takes_files(made) and not values else f'({values})'}"
        for flag in made.flags:
            repeated = "*" if made.many else ""
            value = "" if made.read is None else f":{action}" if made.optional else action
            yield f"  '{repeated}{flag}[{text}]{value}' \\"
    if words := _subcommands(options):
        yield f"  '1:subcommand:({words})' \\"
    yield "  '*:file:_files'"


def _fish(prog: str, options: list[Option]) -> Iterator[str]:
    if words := _subcommands(options):
        yield f"complete -c {prog} -n __fish_use_subcommand -a '{words}'"
    for made in options:
        for flag in made.flags:
            name = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            takes = "" if made.read is None or made.optional else " -r"
            values = f" -f -a '{' '.join(_values(made))}'" if _values(made) else ""
            yield f"complete -c {prog} {name}{takes}{values} -d '{_quoted(made.help)}'"


def _quoted(text: str) -> str:
    """A text inside single quotes."""
    return text.replace("'", "'\\''")
