#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
#
# installed.sh SOURCE BUILD LIBDIR CC: what `cmake --install` leaves can be used by a stranger, through
# pkg-config and through find_package, and the manual pages of every function are there.
set -eu
source=$1
build=$2
libdir=$3
cc=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

DESTDIR=$work/root cmake --install "$build" >"$work/log" || {
	cat "$work/log" >&2
	exit 1
}
prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:[A-Z]*=//p' "$build/CMakeCache.txt")
root=$work/root$prefix

export PKG_CONFIG_PATH="$root/$libdir/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$work/root"
# shellcheck disable=SC2046 # flags are words
"$cc" -std=c11 "$source/tests/abi/header_c11.c" $(pkg-config --cflags --libs libsmc) -o "$work/by_pc"
LD_LIBRARY_PATH=$root/$libdir "$work/by_pc"

mkdir "$work/consumer"
cp "$source/tests/abi/header_cpp20.cpp" "$work/consumer/"
cat >"$work/consumer/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(consumer CXX)
find_package(smc 0.1 REQUIRED)
add_executable(consumer header_cpp20.cpp)
target_compile_features(consumer PRIVATE cxx_std_20)
target_link_libraries(consumer PRIVATE smc::smc)
CMAKE
{
	cmake -S "$work/consumer" -B "$work/consumer/build" -Dsmc_DIR="$root/$libdir/cmake/smc" &&
		cmake --build "$work/consumer/build"
} >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	exit 1
}
"$work/consumer/build/consumer"

missing=0
while read -r symbol; do
	case $symbol in smc_*) ;; *) continue ;; esac
	page=$root/share/man/man3/${symbol%@@*}.3
	[ -e "$page" ] || {
		echo "no manual page ${page##*/}" >&2
		missing=1
	}
done <"$source/tests/abi/symbols.txt"
exit $missing
