#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
#
# Claim: on a machine that never ran any of them, with no cache directory yet, the scripts that
# look into the cache say what is missing and how to get it, instead of ending without a word.
set -uo pipefail

scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
failed=0

says() { # says TEXT COMMAND...
	local text=$1 output
	shift
	output=$(SMC_CACHE=$home/none/yet "$@" 2>&1) && echo "$*: succeeded" && failed=1
	grep -qF "$text" <<<"$output" || {
		printf '%s: said "%s", not "%s"\n' "$*" "$output" "$text"
		failed=1
	}
	rm -rf "$home/none"
}

says "run scripts/kernels 6.1" "$scripts/kernels" --path 6.1
says "run scripts/kernels 6.12" "$scripts/kernels" --path 6.12
says "scripts/debug-kernel" "$scripts/debug-kernel" --path
exit $failed
