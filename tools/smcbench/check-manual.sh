#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
#
# check-manual.sh SMCBENCH PAGE: every verb of --help, and every option of every verb, is in the manual
# page.
set -eu
smcbench=$1
page=$2
failed=0

complain() {
	echo "$*" >&2
	failed=1
}

verbs=$("$smcbench" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p')
[ -n "$verbs" ] || complain "the verbs cannot be read from smcbench --help"
# The page without font changes and escaped dashes.
text=$(sed -e 's/\\f[A-Z]//g' -e 's/\\-/-/g' -e 's/\\ / /g' "$page")
for verb in $verbs; do
	echo "$text" | grep -qE "^\.BI? $verb( |\$)" || complain "$page does not describe the verb $verb"
	for option in $("$smcbench" "$verb" --help | grep -o -e '--[a-z][a-z-]*' | sort -u); do
		[ "$option" = --help ] || echo "$text" | grep -q -e "$option" ||
			complain "$page does not describe $option of $verb"
	done
done
exit $failed
