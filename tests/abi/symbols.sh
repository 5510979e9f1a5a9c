#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
#
# symbols.sh LIBRARY LIST: LIBRARY exports exactly the symbols of LIST, is libsmc.so.0, and needs no
# library beyond libc, libstdc++ (with its libgcc_s and libm), libnl and, if sanitized, their runtimes.
set -eu
library=$1
list=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm --dynamic --defined-only --format=posix "$library" | cut -d' ' -f1 | sort >"$work/exported"
LC_ALL=C sort "$list" >"$work/expected"
LC_ALL=C sort -o "$work/exported" "$work/exported"
diff -u "$work/expected" "$work/exported" || {
	echo "exported symbols differ from $list: a released symbol never goes, a new one is added there" >&2
	exit 1
}

readelf --dynamic --wide "$library" >"$work/dynamic"
grep -q 'SONAME.*\[libsmc\.so\.0\]' "$work/dynamic" || {
	echo "the soname of $library is not libsmc.so.0" >&2
	exit 1
}
unexpected=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$work/dynamic" |
	grep -Ev '^(libc|libm|libstdc\+\+|libgcc_s|libnl-3|libnl-genl-3|libasan|libubsan|libtsan)\.so\.' || true)
if [ -n "$unexpected" ]; then
	echo "$library needs $unexpected" >&2
	exit 1
fi
