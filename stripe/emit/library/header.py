"""The header of a library: its tensors as macros, and its functions, for C and C++."""

from __future__ import annotations

from collections.abc import Iterator

from stripe.emit.c.literals import memory_literal
from stripe.emit.c.module import EntryParameter
from stripe.emit.c.names import sanitize
from stripe.emit.library.names import with_prefix
from stripe.emit.library.sources import Sources
from stripe.emit.library.weights import Weights
from stripe.emit.loops.memory import ALIGNMENT
from stripe.emit.loops.scope import Names
from stripe.ir import is_row_major

INTERFACE = 1
"""The version of the interface: it rises when callers have to change."""

_STATUS = """\
/* Results of functions. */
enum {
  NET_OK = 0,
  NET_ERROR_ARGUMENT = 1, /* a pointer is NULL, or weights in memory are not aligned */
  NET_ERROR_SETUP = 2,    /* net_run before the weights are bound */
  NET_ERROR_ARENA = 3,    /* the arena is too small, or not aligned */
  NET_ERROR_FILE = 4,     /* the file of the weights cannot be read */
  NET_ERROR_SIZE = 5,     /* the weights are too short or too long */
  NET_ERROR_FORMAT = 6,   /* no weights, another version of their format, or another order of bytes */
  NET_ERROR_LAYOUT = 7,   /* weights of another network */
  NET_ERROR_CHECKSUM = 8  /* damaged weights */
};

/* A network with its weights. Its fields are the library's own. One may be used by all threads. */
typedef struct net_model {
  const unsigned char *weights;
  void *mapped;
  size_t mapped_bytes;
  int ready;
} net_model;
"""

_MEMORY = """\
/* Binds weights that the caller holds in memory, aligned to NET_ALIGNMENT, until net_release. */
NET_API int net_setup_memory(net_model *net, const void *weights, size_t bytes);
"""

_FILE = """\
/* Maps the file of the weights into memory and binds it. */
NET_API int net_setup_file(net_model *net, const char *path);
"""

_LINKED = """\
/* Binds the weights that are linked in. */
NET_API int net_setup(net_model *net);
"""

_PLAIN = """\
/* There are no weights to bind. */
NET_API int net_setup(net_model *net);
"""

_RUN = """\
NET_API void net_release(net_model *net);

/* Bytes of the arena that a run needs: NET_ARENA_BYTES, and workspaces of the threads where there are several. */
NET_API size_t net_arena_bytes(void);

/* Computes the outputs. The arena is aligned to NET_ALIGNMENT, and no other run uses it meanwhile; its contents mean
   nothing before and after. Tensors do not overlap the arena or each other. Nothing is allocated. */
"""


def header(sources: Sources, weights: Weights, linked: bool, version: str, bound: int) -> str:
    """The text of `net.h`. `bound` is the lower bound of the bytes of placed buffers."""
    lines = ["/* @TITLE@ */", "", "#ifndef NET_H", "#define NET_H", ""]
    lines += ["#include <stddef.h>", "#include <stdint.h>", ""]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += ["#if defined(__GNUC__)", '#define NET_API __attribute__((visibility("default")))']
    lines += ["#else", "#define NET_API", "#endif", ""]
    lines += [f"#define NET_INTERFACE {INTERFACE}", f'#define NET_GENERATOR "stripe-opt {version}"']
    lines += [f"#define NET_ALIGNMENT {ALIGNMENT}", ""]
    lines += [
        "/* Bytes of the arena of one thread, and a lower bound: buffers that are alive at the same time. */"
    ]
    lines += [f"#define NET_ARENA_BYTES {sources.arena_bytes + sources.thread_bytes}"]
    lines += [f"#define NET_ARENA_LOWER_BOUND {bound}", ""]
    if weights.slots:
        lines += [f"#define NET_WEIGHTS_BYTES {len(weights.data)}"]
        lines += [f"#define NET_WEIGHTS_LAYOUT 0x{weights.layout:08x}u"]
        lines += [f"#define NET_WEIGHTS_CHECKSUM 0x{weights.checksum:08x}u", ""]
    head = with_prefix("\n".join(lines), sources.dialect.prefix).replace("@TITLE@", sources.title)
    setup = (_MEMORY + "\n" + (_LINKED if linked else _FILE)) if weights.slots else _PLAIN
    tail = with_prefix(f"{_STATUS}\n{setup}\n{_RUN}NET_API", sources.dialect.prefix)
    guard = f"{sources.dialect.prefix.upper()}_H"
    end = f"\n\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {guard} */\n"
    macros = tensor_macros(sources)
    tensors = [line for p in sources.tensors for line in (*_tensor(p, macros[p.name], sources), "")]
    return "\n".join([head, *tensors, f"{tail} {sources.run_head()};"]) + end


def tensor_macros(sources: Sources) -> dict[str, str]:
    """The beginnings of the macros of each tensor, such as `NET_IN_X`, by the name of its parameter."""
    prefix = sources.dialect.prefix.upper()
    names = {True: Names(_upper), False: Names(_upper)}
    return {
        p.name: f"{prefix}_{'OUT' if p.role == 'out' else 'IN'}_{names[p.role == 'out'].take(p.ref.name)}"
        for p in sources.tensors
    }


def _upper(name: str) -> str:
    return sanitize(name).upper()


def _tensor(parameter: EntryParameter, macro: str, sources: Sources) -> Iterator[str]:
    """The macros of a tensor. Strides count elements."""
    ref = parameter.ref
    yield f"/* {parameter.describe()} */".replace("\n", " ")
    yield f"#define {macro}_TYPE {sources.dialect.memory_type(ref.dtype)}"
    yield f'#define {macro}_DTYPE "{ref.dtype}"'
    yield f"#define {macro}_RANK {ref.rank}"
    if ref.rank:
        yield f"#define {macro}_SHAPE {{{', '.join(map(str, ref.sizes))}}}"
        yield f"#define {macro}_STRIDES {{{', '.join(map(str, ref.strides))}}}"
    if ref.layout is None:
        yield f'#define {macro}_LAYOUT "{"row-major" if is_row_major(ref.sizes, ref.strides) else "strided"}"'
    else:
        yield f'#define {macro}_LAYOUT "{ref.layout}"'
        if ref.layout.pad is not None:
            yield f"#define {macro}_PAD {memory_literal(ref.layout.pad, ref.dtype)}"
    yield f"#define {macro}_ELEMENTS {ref.span}"
    yield f"#define {macro}_BYTES {ref.bytes}"
