# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck shell=bash
#
# SMC itself, for the test scripts: start it on this node, export, drive the region, stop it.
#
# Owns: /run/smcfs (configuration, pid), the mount on /smc, files in /dev/shm that are exported.
# Failure: a step that fails ends the case; product_stop is a case of its own, since that
# the module unloads and the daemon ends is a claim too.

PRODUCT_CONFIG=/run/smcfs/smcfsd.toml
PRODUCT_PID=/run/smcfs/smcfsd.pid
TARGET_PORT=7500 # of model-target, which answers what the target's memory holds
START_S=60       # for a daemon to be ready, on a busy machine
# Guests share processors with whatever else the host does: only tests of failures want it short.
REQUEST_TIMEOUT_MS=20000
CONNECT_TIMEOUT_MS=5000 # the default
[ "$KERNEL" != debug ] || CONNECT_TIMEOUT_MS=20000

# --- module, daemon, mount ---------------------------------------------------------------

# A configuration with all nodes as peers; tests append to it.
write_config() {
	local name
	mkdir -p /run/smcfs
	{
		echo "node = \"$NODE\""
		printf '[timeouts]\nrequest_timeout_ms = %s\n' "$REQUEST_TIMEOUT_MS"
		printf 'connect_timeout_ms = %s\n' "$CONNECT_TIMEOUT_MS"
		for name in $NODE_NAMES; do
			printf '[[peer]]\nname = "%s"\n' "$name"
		done
	} >"$PRODUCT_CONFIG"
}

daemon_answers() { smcctl status | grep -q '^Daemon'; }
daemon_pid() { cat "$PRODUCT_PID"; }

# The daemon's log goes to the console, between the lines of the test.
start_daemon() {
	[ -e "$PRODUCT_CONFIG" ] || write_config
	smcfsd --config "$PRODUCT_CONFIG" </dev/null &
	echo $! >"$PRODUCT_PID"
	eventually "$START_S" daemon_answers
}

stop_daemon() {
	stop_process "$(daemon_pid)" 30
	rm -f "$PRODUCT_PID"
}

kill_daemon() {
	kill -KILL "$(daemon_pid)"
	eventually 10 process_gone "$(daemon_pid)"
}

load_module() {
	modprobe -a rdma_cm ib_core
	insmod "$SMC_ROOT/build/kmod-$KERNEL/smcfs.ko"
}

mount_smc() {
	mkdir -p /smc
	mount -t smcfs smcfs /smc
}

start_target() { start_daemon; }

start_client() {
	load_module
	mount_smc
	start_daemon
	# The daemon tells the kernel of its peers once it is connected to it.
	eventually 30 test -d /smc/target
}

# Every node but the target is a client.
product_start() {
	if [ "$NODE" = target ]; then start_target; else start_client; fi
	barrier product-started
}

product_stop() {
	barrier product-in-use-no-more
	if [ "$NODE" != target ]; then
		check umount /smc
		check stop_daemon
		check rmmod smcfs
	fi
	barrier clients-stopped
	if [ "$NODE" = target ]; then
		check stop_daemon
		find /dev/shm -mindepth 1 -delete
	fi
}

# When a case failed halfway, so that the next script of the boot finds a clean node.
product_abort() {
	[ ! -e "$PRODUCT_PID" ] || kill -KILL "$(daemon_pid)" 2>/dev/null || true
	rm -rf /run/smcfs
	grep -q '^smcfs ' /proc/modules || return 0
	umount -f /smc 2>/dev/null || true
	umount /smc 2>/dev/null || true
	rmmod smcfs || true
}
defer product_abort

# --- regions -----------------------------------------------------------------------------

# export_file NAME SIZE [OPTIONS]: on the target: memory that a test can look into, exported.
export_file() {
	local name=$1 size=$2
	shift 2
	mkdir -p "/dev/shm/$(dirname "$name")"
	truncate -s "$size" "/dev/shm/$name"
	check smcctl export "$name" --file "/dev/shm/$name" --mode 0666 "$@"
}

# unexport NAME
unexport() {
	check smcctl unexport "$1"
	rm -f "/dev/shm/$1"
}

# serve_memory NAME [PORT [OFFSET LENGTH]]: on the target: answer what the exported memory is.
serve_memory() {
	local name=$1 port=${2:-$TARGET_PORT}
	model-target "/dev/shm/$name" "$port" ${3:+"$3" "$4"} </dev/null &
	echo $! >>/run/vm/servers
	eventually 20 port_is_served "$port"
}
port_is_served() { ss -Hltn "sport = :$1" | grep -q LISTEN; }

stop_serving() {
	local pid
	while read -r pid; do
		kill "$pid" 2>/dev/null || true
	done </run/vm/servers
	rm -f /run/vm/servers
}

# The target hears all, and nobody hears the target.
lose_acks() {
	if [ "$1" = yes ]; then
		modprobe sch_netem
		check tc qdisc add dev eth0 root netem loss 100%
	else
		check tc qdisc del dev eth0 root
	fi
}

# store_taken_back REGION OFFSET MS: a store gets to the target, but its acknowledgement does not; what was there
# before is stored then, and has to get there, too. The region has zeros there; MS is time enough for a call.
store_taken_back() {
	local name=$1 offset=$2 ms=$3
	if [ "$NODE" = client ]; then
		probe_open back
		p back "open rw /smc/target/$name"
		p back "map rw shared 0 0"
		p back "load $offset 64"
	fi
	barrier "opened $name"
	on target defer tc qdisc del dev eth0 root
	on target lose_acks yes
	barrier "deaf to $name"
	if [ "$NODE" = client ]; then
		p back "store $offset 64 1"
		p back "within $ms ! EIO fsync"
	fi
	barrier "failed $name"
	on target eventually 20 probe_script "open r /dev/shm/$name" "pexpect $offset 64 1"
	barrier "arrived $name"
	on client p back "store $offset 64 0"
	on target lose_acks no
	barrier "heard of $name"
	if [ "$NODE" = client ]; then
		eventually 60 region_is "$name" active
		p back fsync
		probe_close back
	fi
	barrier "taken back $name"
	on target probe_script "open r /dev/shm/$name" "pexpect $offset 64 0"
}

# pattern SIZE SEED: so many bytes, the same on every node.
pattern() { seq "$2" 9999999 | head -c "$1" || [ $? = 141 ]; }

# counter REGION NAME: one of the numbers of smcctl stats, as fetch_bytes or dirty_bytes.
counter() {
	# Each process costs more here than what it does.
	[[ "$(smcctl -j stats "$1")" =~ \"$2\":\ *([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

# counter_is REGION NAME VALUE
counter_is() { [ "$(counter "$1" "$2")" = "$3" ]; }

# hot_pages_exist: on the client's kernel? As the product says there when it is asked for them. All nodes
# come to it, in a case; afterwards /run/vm/hot says yes or no.
hot_pages_exist() {
	local answer hot=yes
	on target export_file trial 64K
	barrier exported
	if [ "$NODE" = client ]; then
		check smcctl attach target:trial
		if ! answer=$(smcctl set target:trial hot=on 2>&1); then
			[[ $answer == *"no hot pages on this kernel"* ]] || fail "hot=on: $answer"
			hot=no
		fi
		put hot $hot
	fi
	get hot >/run/vm/hot
	on target unexport trial
}

# region_is NAME STATE
region_is() { [ "$(smcctl -j regions | tr -d ' \n' | grep -o '"attached":.*' | grep -o "\"name\":\"$1\"[^}]*" | grep -o '"state":"[a-z]*"' | head -n 1)" = "\"state\":\"$2\"" ]; }

# --- a process that does one system call at a time ------------------------------------------

# probe_open NAME [COMMAND...]: start a probe (run by COMMAND, as setpriv); `p NAME CALL` then
# has it do one call; probe_close ends it.
declare -A PROBE_IN PROBE_OUT PROBE_PID
probe_open() {
	local name=$1 in out pipe
	shift
	pipe=/run/vm/probe.$BASHPID.$name
	mkfifo "$pipe.in" "$pipe.out"
	"$@" probe <"$pipe.in" >"$pipe.out" &
	PROBE_PID[$name]=$!
	exec {in}>"$pipe.in" {out}<"$pipe.out"
	PROBE_IN[$name]=$in
	PROBE_OUT[$name]=$out
	rm "$pipe.in" "$pipe.out"
}

p() {
	p_start "$@"
	p_end "$1"
}

# p_start NAME CALL: do not wait for its end; p_end NAME does. The answer is in PROBE_REPLY.
p_start() {
	local name=$1
	shift
	printf '%s\n' "$*" >&"${PROBE_IN[$name]}"
}

# Without a line for each call.
p_quiet() { p "$@" >/dev/null; }

p_end() {
	IFS= read -r PROBE_REPLY <&"${PROBE_OUT[$1]}" || fail "probe $1 has ended"
	printf '  %s: %s\n' "$1" "$PROBE_REPLY"
	[[ $PROBE_REPLY != FAILED* ]] || fail "$PROBE_REPLY"
}

# sends BYTES PROBE CALL...: the calls, then a barrier; so many bytes of the region
# $SENDS_FROM go out.
sends() {
	local bytes=$1 name=$2 before call
	shift 2
	p "$name" fsync
	before=$(counter "$SENDS_FROM" flush_bytes)
	for call in "$@"; do
		p "$name" "$call"
	done
	p "$name" fsync
	check_equal "bytes sent by: $*" $(($(counter "$SENDS_FROM" flush_bytes) - before)) "$bytes"
}

probe_close() {
	local in=${PROBE_IN[$1]} out=${PROBE_OUT[$1]}
	# Told to, and not by the end of its input: a daemon that was started meanwhile has that open too.
	echo "exit 0" >&"$in"
	exec {in}>&-
	wait "${PROBE_PID[$1]}"
	exec {out}<&-
}

# probe_script LINE...: all lines in a process that then ends. Its last words are why a case failed.
probe_script() {
	local rc=0 output=/run/vm/probe.$BASHPID
	printf '%s\n' "$@" | probe >"$output" || rc=$?
	cat "$output"
	# shellcheck disable=SC2034 # lib.sh reports it
	[ $rc -eq 0 ] || CASE_STEP="probe: $(tail -n 1 "$output")"
	rm -f "$output"
	return $rc
}
