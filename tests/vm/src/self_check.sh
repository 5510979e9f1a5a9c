#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
#
# The test programs, tested: on plain files, where everything they claim is true, each must pass;
# with a fault put in on purpose, each must fail.
#
#   self_check.sh BIN_DIR SCRATCH_DIR
set -uo pipefail

bin=$1
dir=$(mktemp -d "$2/self-check.XXXXXX")
trap 'rm -rf "$dir"' EXIT
failures=0

# must EXIT_CODE NAME COMMAND...
must() {
	local want=$1 name=$2 got
	shift 2
	"$@" >"$dir/out" 2>&1
	got=$?
	if [ "$got" = "$want" ]; then
		echo "ok: $name"
	else
		echo "FAILED: $name: exit $got instead of $want"
		tail -n 30 "$dir/out"
		failures=$((failures + 1))
	fi
}

fresh() { truncate -s 0 "$dir/$1" && truncate -s "$2" "$dir/$1"; }

fresh region $((1024 * 1024 + 1234))
fresh scratch 1M
model=("$bin/model" --local "$dir/region" --scratch "$dir/scratch")
for seed in 1 2 3; do
	must 0 "model, seed $seed" "${model[@]}" --seed "$seed" --ops 4000
done
# Where the kernel places a mapping differs from run to run; in one of four its buffer would go into
# a hole that it made.
for run in 1 2 3 4 5; do
	must 0 "model, addresses $run" "${model[@]}" --seed 2 --ops 1530
done
must 0 "model with O_DIRECT" "${model[@]}" --seed 4 --ops 3000 --direct
must 0 "model, eager" "${model[@]}" --seed 6 --ops 2000 --eager
for kind in store barrier clobber; do
	must 1 "model finds a broken $kind" "${model[@]}" --seed 5 --ops 4000 --break "$kind"
done
must 2 "model refuses an unknown target" \
	"$bin/model" --region "$dir/region" --target "nfs:$dir/region"


fresh race 1M
must 0 "barrier-race" "$bin/barrier-race" --region "$dir/race" --target "file:$dir/race" \
	--barriers 50
must 1 "barrier-race finds a lost store" "$bin/barrier-race" --region "$dir/race" \
	--target "file:$dir/race" --barriers 50 --break

# Five writers of one file at a time, of which one may lose a store. Called by must.
# shellcheck disable=SC2317
writers() { # writers [OPTION]
	local part
	fresh merge 256K
	for part in 0 1 2 3; do
		"$bin/merge-writer" "$dir/merge" --parts 5 --part "$part" --ops 3000 &
	done
	"$bin/merge-writer" "$dir/merge" --parts 5 --part 4 --ops 3000 --memory "$@"
	wait
	"$bin/merge-writer" "$dir/merge" --parts 5 --ops 3000 --check
}
must 0 "merge-writer" writers
must 1 "merge-writer finds a lost store" writers --break

# A file that is stored to, and who looks at it meanwhile. Called by must.
# shellcheck disable=SC2317
floats() { # floats [OPTION]
	local pid status
	fresh floats 64K
	"$bin/floats" watch "$dir/floats" >"$dir/watched" &
	pid=$!
	until grep -q watching "$dir/watched"; do
		kill -0 "$pid" || return 2
	done
	"$bin/floats" store "$dir/floats" 200000 "$@"
	wait "$pid" && status=0 || status=$?
	return "$status"
}
must 0 "floats" floats
must 1 "floats finds a store in halves" floats --break

# shellcheck disable=SC2317
swept() { # swept [OPTION]
	fresh sweep 2M
	"$bin/sweep" "$dir/sweep" --passes 2 --rounds 2 --again 1M --chunk 512K "$@" || return 2
	"$bin/sweep" "$dir/sweep" --passes 2 --rounds 2 --again 1M --chunk 512K --check
}
must 0 "sweep" swept
must 2 "sweep finds a lost store" swept --break
must 1 "sweep knows one file from another" \
	"$bin/sweep" "$dir/sweep" --passes 2 --rounds 2 --chunk 512K --check

fresh plain 12289
must 1 "bad-ioctls finds a file that knows none of them" "$bin/bad-ioctls" "$dir/plain"

fresh stress 1M
must 0 "stress" "$bin/stress" --region "$dir/stress" --target "file:$dir/stress" --seconds 3
must 1 "stress finds a lost store" "$bin/stress" --region "$dir/stress" \
	--target "file:$dir/stress" --seconds 1 --break

# shellcheck disable=SC2317 # must calls it
watched() {
	local pid status
	fresh words 1M
	"$bin/words" watch "$dir/words" >"$dir/watched" &
	pid=$!
	until grep -q watching "$dir/watched"; do
		kill -0 "$pid" || return 2
	done
	"$bin/words" order "$dir/words" 20000 "$@" || kill "$pid"
	wait "$pid" && status=0 || status=$?
	return "$status"
}
must 0 "words: data, then the flag" watched
must 1 "words finds a flag before its data" watched --break

printf '%s\n' "open rw $dir/race" "map rw shared 0 0" "store 0 4096 7" "msync 0 4096" \
	"pexpect 0 4096 7" >"$dir/script"
# shellcheck disable=SC2317 # must calls it
run_script() { "$bin/probe" <"$dir/script"; }
must 0 "probe" run_script
echo "pexpect 0 4096 8" >>"$dir/script"
must 1 "probe finds a wrong byte" run_script
printf '%s\n' "open rw $dir/race" "map rw shared 0 1M" "truncate 0" "! SIGBUS load 0 1" >"$dir/script"
must 0 "probe survives SIGBUS" run_script

[ "$failures" = 0 ] && echo "all passed"
exit $((failures != 0))
