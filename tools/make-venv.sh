#!/bin/sh
# Creates the virtual environment $1 when there is no usable one, with the first Python that is new enough.
# PYTHON=/path/to/python chooses another.
set -eu
venv=$1

if [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

found=
for candidate in "${PYTHON:-python3}" python3 python3.14 python3.13 python3.12 python3.11 python; do
    if new_enough "$candidate"; then
        found=$candidate
        break
    fi
done
if [ -z "$found" ]; then
    echo "error: no Python 3.11 or newer on the PATH; install one, or name it: make PYTHON=/path/to/python3.11 setup" >&2
    exit 1
fi

rm -rf "$venv"
if ! log=$("$found" -m venv "$venv" 2>&1); then
    rm -rf "$venv" # a half-made one would be taken for good the next time
    echo "error: '$found -m venv $venv' failed:" >&2
    printf '%s\n' "$log" | sed 's/^/    /' >&2
    echo "On Debian and Ubuntu the module is a package of its own: apt-get install python3-venv" >&2
    exit 1
fi
