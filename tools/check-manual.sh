#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
#
# check-manual.sh PROGRAM VERBS PAGE [COMPLETION]: every verb of --help, VERBS at least, and every
# option of every verb, is in the manual page and in the bash completion; the page and the completion
# are well-formed.
set -eu
program=$1
verbs_min=$2
page=$3
completion=${4:-}
failed=0

complain() {
	echo "$*" >&2
	failed=1
}

verbs=$("$program" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p')
[ "$(echo "$verbs" | wc -w)" -ge "$verbs_min" ] || complain "the verbs cannot be read from $program --help"

# The page without font changes and escaped dashes.
text=$(sed -e 's/\\f[A-Z]//g' -e 's/\\-/-/g' -e 's/\\ / /g' "$page")
documented=$(echo "$text" | sed -n '/^\.SH VERBS/,/^\.SH EXIT/p' |
	sed -n 's/^\.BI\{0,1\} \([a-z][a-z]*\)\( .*\)\{0,1\}$/\1/p' | sort -u)

for verb in $verbs; do
	echo "$documented" | grep -qx "$verb" || complain "$page does not describe the verb $verb"
	[ -z "$completion" ] || grep -qw -e "$verb" "$completion" ||
		complain "$completion does not know the verb $verb"
	for option in $("$program" "$verb" --help | grep -o -e '--[a-z][a-z-]*' | sort -u); do
		echo "$text" | grep -q -e "$option" ||
			complain "$page does not describe $option of $verb"
		[ -z "$completion" ] || grep -q -e "$option" "$completion" ||
			complain "$completion does not know $option of $verb"
	done
done
[ -z "$completion" ] || bash -n "$completion" || complain "$completion is no valid bash"
if command -v groff >/dev/null; then
	warnings=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
	[ -z "$warnings" ] || complain "$warnings"
fi
exit $failed
