"""The build files of a library, and an example that calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from stripe.emit.c.dialect import FLAGS
from stripe.emit.library.header import tensor_macros
from stripe.emit.library.names import with_prefix
from stripe.emit.library.sources import Sources

_MAKE = """\
# @TITLE@
#
#   make -j         libnet.a, libnet.so and example
#   make ARCH=      for any processor of this kind, instead of the one at hand

CC ?= cc
CXX ?= c++
ARCH ?= -march=native
CFLAGS ?= -O3
OPENMP ?= @OPENMP_FLAG@
NET_FLAGS = @FLAGS@ -fPIC -fvisibility=hidden $(ARCH) $(OPENMP)
OBJECTS = @OBJECT_FILES@

all: libnet.a libnet.so example

%.o: %.c net.h net_internal.h
	$(CC) $(NET_FLAGS) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

%.o: %.S net.weights
	$(CC) $(CPPFLAGS) -I. -c $< -o $@

libnet.a: $(OBJECTS)
	rm -f $@
	$(AR) rcs $@ $(OBJECTS)

libnet.so: $(OBJECTS)
	$(CC) -shared $(OPENMP) $(LDFLAGS) -o $@ $(OBJECTS) -lm

example: example.c libnet.a
	$(CC) -std=c11 $(CPPFLAGS) $(CFLAGS) $(OPENMP) $(LDFLAGS) example.c libnet.a -lm -o $@

example-cpp: example.c libnet.a
	$(CXX) -x c++ $(CPPFLAGS) $(CFLAGS) $(OPENMP) $(LDFLAGS) example.c -x none libnet.a -lm -o $@

clean:
	rm -f $(OBJECTS) libnet.a libnet.so example example-cpp

.PHONY: all clean
"""

_CMAKE = """\
# @TITLE@

cmake_minimum_required(VERSION 3.13)
project(net LANGUAGES @LANGUAGE_NAMES@)

option(NET_NATIVE "Build for the processor at hand" ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(net @SOURCE_FILES@)
set_target_properties(net PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF
  C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
target_include_directories(net PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_options(net PRIVATE "$<$<COMPILE_LANGUAGE:C>:@FLAGS@;-O3>")
if(NET_NATIVE)
  target_compile_options(net PRIVATE $<$<COMPILE_LANGUAGE:C>:-march=native>)
endif()
target_link_libraries(net PUBLIC m)
"""

_CMAKE_OPENMP = """\
find_package(OpenMP REQUIRED COMPONENTS C)
target_link_libraries(net PUBLIC OpenMP::OpenMP_C)
"""

_CMAKE_ASM = """\
set_source_files_properties(net_weights.S PROPERTIES OBJECT_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/net.weights)
"""

_CMAKE_EXAMPLE = """\

add_executable(example example.c)
target_link_libraries(example PRIVATE net)
"""

_ASSEMBLER = """\
/* @TITLE@ */

#if defined(__APPLE__)
.section __TEXT,__const
#define NAME _net_weights_data
.private_extern NAME
#else
.section .rodata
#define NAME net_weights_data
.hidden NAME
#endif
.globl NAME
.balign 64
NAME:
.incbin "net.weights"
#if defined(__linux__) && defined(__ELF__)
.section .note.GNU-stack,"",%progbits
#endif
"""

_EXAMPLE = """\
/* @TITLE@

   Runs the network once.

     ./example PATHS

   Tensors are files with the bytes of their elements. A missing input is zero, a missing output is printed. */

#include <stdio.h>
#include <stdlib.h>

#include "net.h"

static void transfer(void *data, size_t bytes, const char *path, int reads) {
  FILE *file = fopen(path, reads ? "rb" : "wb");
  if (file == NULL || (reads ? fread(data, 1, bytes, file) : fwrite(data, 1, bytes, file)) != bytes) {
    fprintf(stderr, "%s: not %lu bytes that can be %s\\n", path, (unsigned long)bytes, reads ? "read" : "written");
    exit(1);
  }
  fclose(file);
}

int main(int count, char **arguments) {
  net_model model;
  int status = @SETUP@;
  if (status != NET_OK) {
    fprintf(stderr, "the weights cannot be bound: error %d\\n", status);
    return 1;
  }
  const size_t bytes = net_arena_bytes();
  unsigned char *memory = (unsigned char *)malloc(bytes + NET_ALIGNMENT);
  if (memory == NULL) {
    fprintf(stderr, "out of memory: %lu bytes\\n", (unsigned long)bytes);
    return 1;
  }
  void *arena = memory + (NET_ALIGNMENT - (uintptr_t)memory % NET_ALIGNMENT);
"""


def build_files(
    sources: Sources, names: Sequence[str], *, weights: str, openmp: bool
) -> Iterator[tuple[str, str]]:
    """The build files, the example, and the assembler file that holds the weights as an object. `names` are those of
    the C files, `weights` is how these come into the program, empty where there are none."""
    prefix, title = sources.dialect.prefix, sources.title
    compiled = [name for name in names if name.endswith(".c")]
    compiled += [f"{prefix}_weights.S"] if weights == "object" else []
    objects = " ".join(name.rpartition(".")[0] + ".o" for name in compiled)

    def filled(text: str, **values: str) -> str:
        text = with_prefix(text, prefix)
        for word, value in {"TITLE": title, **values}.items():
            text = text.replace(f"@{word}@", value)
        return text

    yield (
        "Makefile",
        filled(_MAKE, FLAGS=" ".join(FLAGS), OPENMP_FLAG="-fopenmp" if openmp else "", OBJECT_FILES=objects),
    )
    cmake = _CMAKE + (_CMAKE_OPENMP if openmp else "") + (_CMAKE_ASM if weights == "object" else "")
    languages = "C ASM" if weights == "object" else "C"
    yield (
        "CMakeLists.txt",
        filled(
            cmake + _CMAKE_EXAMPLE,
            FLAGS=" ".join(FLAGS[1:]).replace(" ", ";"),
            LANGUAGE_NAMES=languages,
            SOURCE_FILES=" ".join(compiled),
        ),
    )
    if weights == "object":
        yield f"{prefix}_weights.S", filled(_ASSEMBLER)
    yield "example.c", "\n".join(example_lines(sources, weights, filled))


_VALUES = 8
"""Elements of an output that the example prints."""


def example_lines(sources: Sources, weights: str, filled: Callable[..., str]) -> Iterator[str]:
    """The lines of the example."""
    prefix = sources.dialect.prefix
    setup = f"{prefix}_setup(&model)"
    if weights == "file":
        setup = f'{prefix}_setup_file(&model, "{prefix}.weights")'
    yield filled(_EXAMPLE, SETUP=setup).rstrip("\n")
    macros = tensor_macros(sources)
    tensors = [(f"tensor_{n}", p, macros[p.name]) for n, p in enumerate(sources.tensors)]
    for name, parameter, macro in tensors:
        yield f"  static {macro}_TYPE {name}[{macro}_ELEMENTS{'' if parameter.ref.elements else ' + 1'}];"
    yield "  int path = 1;"
    for name, parameter, macro in tensors:
        if parameter.role != "out":
            yield f"  if (path < count) transfer({name}, {macro}_BYTES, arguments[path++], 1);"
    arguments = "".join(f", {name}" for name, _, _ in tensors)
    yield f"  status = {prefix}_run(&model, arena, bytes{arguments});"
    yield f"  if (status != {prefix.upper()}_OK) {{"
    yield '    fprintf(stderr, "the run failed: error %d\\n", status);'
    yield "    return 1;"
    yield "  }"
    for name, parameter, macro in tensors:
        if parameter.role == "in":
            continue
        yield "  if (path < count) {"
        yield f"    transfer({name}, {macro}_BYTES, arguments[path++], 0);"
        yield "  } else {"
        narrow = parameter.ref.dtype.is_narrow
        yield f'    printf("{macro}{" (bits)" if narrow else ""}:");'
        yield f"    for (size_t i = 0; i < {min(parameter.ref.span, _VALUES)}; ++i) {{"
        yield f'      printf(" %.9g", (double){name}[i]);'
        yield "    }"
        yield f'    printf("{" ..." if parameter.ref.span > _VALUES else ""}\\n");'
        yield "  }"
    yield f"  {prefix}_release(&model);"
    yield "  free(memory);"
    yield "  return 0;"
    yield "}"
    yield ""
