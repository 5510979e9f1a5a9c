# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck shell=bash disable=SC2034
#
# SMC: this node exports regions to itself, through its own RDMA device.

daemon_answers() { smcctl status | grep -q '^Daemon'; }

smc_start() {
	mkdir -p /run/smcfs /smc
	cat >/run/smcfs/smcfsd.toml <<-END
		node = "$SELF"
		peers = ["$SELF"]
		[control]
		auth = "none"
	END
	insmod /bench/smcfs.ko || return 1
	smcfsd --config /run/smcfs/smcfsd.toml >/run/smcfsd.log 2>&1 &
	SMCFSD=$!
	await "smcfsd" daemon_answers || return 1
	mount -t smcfs smcfs /smc || return 1
	await "/smc/$SELF" test -d "/smc/$SELF"
}

# region NAME SIZE [OPTION...]: export it and attach it.
region() {
	local name=$1 size=$2
	shift 2
	smcctl export "$name" --host "$size" --mode 0666 "$@" || return 1
	smcctl attach "$SELF:$name"
}

# has REGION KEY VALUE: whether it is so.
has() {
	smcctl get "$SELF:$1" "$2" 2>/dev/null | grep -qx "$3"
}
# want REGION KEY VALUE: make it so, where the product can.
want() { has "$@" || { smcctl set "$SELF:$1" "$2=$3" && has "$@"; }; }

# missing SIDE WHY WORKLOAD...: cells that cannot be.
missing() {
	local side=$1 why=$2 workload
	shift 2
	for workload; do
		emit "{\"part\":\"missing\",\"cell\":\"$side/$workload\",\"why\":\"$why\"}"
	done
}

# wanted SIDE: whether its cells were asked for.
wanted() { [[ -z $SIDES || " $SIDES " == *" $1 "* ]]; }

# shellcheck disable=SC2086 # a list
EXCLUSIVE=$(chosen $ALL)
MERGE=$(chosen bulk_4m one_store float_update sparse_64b hot_64b hot_64b_many)
COLD=$(chosen bulk_4m one_store float_update sparse_64b hot_64b hot_64b_many)

# side NAME REGION KEY VALUE WORKLOAD...: the cells of a side, on a region of which KEY is VALUE.
side() {
	local name=$1 region=$2 key=$3 value=$4
	shift 4
	wanted "$name" || return 0
	if want "$region" "$key" "$value"; then
		measure "$name" "/smc/$SELF/$region" "$@"
	else
		missing "$name" "regions do not take $key=$value" "$@"
	fi
}

smc_run() {
	smc_start && region exclusive 64M --writers exclusive && region merge 64M || return 1
	# shellcheck disable=SC2086 # lists
	{
		side exclusive exclusive writers exclusive $EXCLUSIVE &&
			side merge merge writers merge $MERGE &&
			side cold exclusive hot no $COLD &&
			side merge_cold merge hot no $COLD
	} || return 1
	smcctl -j stats
}

if ! smc_run; then
	cat /run/smcfsd.log
	return 1
fi
