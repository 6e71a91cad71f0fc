"""Names and comments of a program made safe for C: whatever a tensor is called, it cannot inject code."""

from __future__ import annotations

import re

_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof fortran
bool true false main and or xor not class new delete template this namespace using try catch throw public private
"""
_MATH = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma fmax fmin
fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter
nexttoward pow remainder remquo rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc
"""
_OTHER = """
signgam j0 j1 jn y0 y1 yn gamma abort abs atexit atof atoi calloc div exit free getenv labs llabs malloc qsort rand
realloc srand system strtod memcpy memmove memset memcmp strlen printf fprintf fputs fopen fclose fread fwrite
stdin stdout stderr errno isnan isinf isfinite isnormal signbit fpclassify isgreater isless isunordered alloca
linux unix i386 BUFSIZ EOF FILENAME_MAX NULL NAN INFINITY RAND_MAX
CHAR_BIT NFDBITS TMP_MAX DOMAIN SING OVERFLOW
UNDERFLOW PLOSS TLOSS BIG_ENDIAN LITTLE_ENDIAN BYTE_ORDER PDP_ENDIAN L_tmpnam L_ctermid L_cuserid P_tmpdir
math_errhandling ws threads
"""
_RESERVED = frozenset(
    [*_KEYWORDS.split(), *_OTHER.split(), *(name + end for name in _MATH.split() for end in ("", "f", "l"))]
)
_RESERVED_FORM = re.compile(  # helpers, entries and OpenMP; types; macros in the headers that we include
    r"(st|stripe|omp|kmp|va)_.*|.*_t"
    r"|(U?INT|FP|M|HUGE|PTRDIFF|SIZE|WCHAR|WINT|SIG|EXIT|MATH|MB|FOPEN|FD|SEEK|ST|FLT|DBL|LDBL)(_|\d|MAX|PTR).*"
    r"|W[A-Z]+|is(less|greater)\w+|[bhl]e\d\dtoh|hto[bl]e\d\d"
)
_MAX_LENGTH = 48  # C11 promises 63 significant characters; the rest is for suffixes


def sanitize(name: str) -> str:
    """A C identifier that looks like `name` and is no keyword, macro or library function."""
    word = re.sub(r"[^A-Za-z0-9_]", "_", name)[:_MAX_LENGTH]
    if not word or not word[0].isalpha():
        word = f"v{word}" if word.startswith("_") else f"v_{word}"
    if _RESERVED_FORM.fullmatch(word):
        word = f"v_{word}"
    return f"{word}_" if word in _RESERVED or word.endswith("_t") else word


def sanitize_comment(text: str) -> str:
    """`text` as it may stand behind `//`: one line of plain ASCII, no backslash (line splices), no trigraph."""
    plain = "".join(char if " " <= char <= "~" else "." for char in text[:300]).replace("\\", "|")
    while "??" in plain:
        plain = plain.replace("??", "? ?")
    return plain.replace("*/", "* /").replace("/*", "/ *").rstrip()
