#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12,debug timeout=1200
#
#     client: model, once for each row of options  -- rxe --  target: /dev/shm/model
#                 `---------- TCP: what does the memory hold? ----------> model-target
#
# Claim: as model.sh, whatever a region's options are. Every two values of different options meet in some
# row, on the debug kernel those of two merge units; with SOAK=1 all combinations are run.
. "$SMC_ROOT/tests/vm/lib-product.sh"

# Hot pages exist in mode lazy only, units in merge regions only: elsewhere their values are different
# options in name alone, which the long form is for.
AXES=(
	'mode=lazy,lazy+hot=off,push,eager'
	'writers=exclusive,exclusive+lines=1,merge+merge_unit=4,merge+merge_unit=64,merge+merge_unit=512,merge+merge_unit=4096'
	'flush_after_ms=5,100'
	'max_stale_us=off,20000'
	'granule=4K,16K,1M'
)
# Two units instead of four: the other two are met on the kernels that are not checked as slowly.
[ "$KERNEL" != debug ] ||
	AXES[1]='writers=exclusive,exclusive+lines=1,merge+merge_unit=4,merge+merge_unit=512'
AXES_LONG=(
	'mode=lazy,push,eager'
	'writers=exclusive,exclusive+lines=1,merge'
	'merge_unit=4,64,512,4096'
	'hot=off,on'
	'flush_after_ms=5,100'
	'max_stale_us=off,20000'
	'granule=4K,16K,1M'
)
SIZE=$((512 * 1024 + 1234))
OPS_SHORT=600 OPS_LONG=20000
[ "$KERNEL" != debug ] || OPS_SHORT=20 OPS_LONG=1000
OPS=${OPS:-$((SOAK ? OPS_LONG : OPS_SHORT))}

# The rows for this kernel, with blanks between settings and semicolons between rows.
option_rows() {
	local axes=("${AXES[@]}") all=()
	[ "$SOAK" = 0 ] || axes=("${AXES_LONG[@]}") all=(--all)
	if [ "$(</run/vm/hot)" = no ]; then
		axes=("${axes[@]/,lazy+hot=off/}")
		axes=("${axes[@]/hot=off,on/hot=off}")
	fi
	"$SMC_ROOT/tests/vm/lib/pairs.py" "${all[@]}" "${axes[@]}" | paste -sd ';'
}

choose_rows() {
	local rows
	if [ "$NODE" = client ]; then
		# Built into the debug kernel.
		[ -b /dev/ram0 ] || modprobe brd rd_nr=1 rd_size=1024
		rows=$(option_rows)
		put rows "$rows"
	fi
	get rows >/run/vm/rows
	check test -s /run/vm/rows
}

# model_run ROW SETTING...: of which the exporter decides the policy, this node the rest.
model_run() {
	local row=$1 setting writers=merge hot=yes lines=2 set=() more=()
	shift
	for setting; do
		case $setting in
		writers=*) writers=${setting#*=} ;;
		lines=*)
			lines=${setting#*=}
			continue
			;;
		mode=push | mode=eager | hot=off) hot=no ;;&
		*) set+=("$setting") ;;
		esac
		[ "$setting" != mode=eager ] || more+=(--eager)
	done
	# Hot pages are handed over as docs/semantics.md says; without them one barrier is enough.
	[ "$writers $hot" != "exclusive yes" ] || more+=(--hand-over)
	on target export_file model "$SIZE" --writers "$writers"
	on target serve_memory model
	barrier served
	if [ "$NODE" = client ]; then
		check smcctl attach target:model
		check smcctl set target:model "${set[@]}"
		echo "$lines" >/sys/module/smcfs/parameters/exclusive_lines
		check model --region /smc/target/model --target "tcp:target:$TARGET_PORT" \
			--scratch /dev/ram0 --direct --system --seed $((SEED + row)) --ops "$OPS" "${more[@]}"
	fi
	barrier finished
	on target stop_serving
	on target unexport model
}

finish() {
	[ "$NODE" != client ] || ! grep -q '^brd ' /proc/modules || rmmod brd
	product_stop
}

case_ "the product starts on both nodes" product_start
case_ "the kernel says whether it has hot pages" hot_pages_exist
case_ "rows are chosen" choose_rows
IFS=';' read -ra ROWS </run/vm/rows
for number in "${!ROWS[@]}"; do
	read -ra row <<<"${ROWS[number]}"
	case_ "${ROWS[number]}" model_run "$number" "${row[@]}"
done
case_ "everything is put away, and the module unloads" finish
pass
