#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12 timeout=1200
#
#     client: smcctl, a program with a region  -- rxe --  target: smcctl
#
# Claim: each verb of smcctl does what it says, in text and in JSON; it tells failure from usage by its
# exit code; and without the daemon it still shows what the kernel knows.
. "$SMC_ROOT/tests/vm/lib-product.sh"

start() {
	on client write_client_config
	product_start
	on target export_file r 1M
	barrier exported
}

write_client_config() {
	write_config
	cat >>"$PRODUCT_CONFIG" <<-END
		[[region]]
		match = "target/r"
		flush_after_ms = 200
		[[region]]
		match = "target/ruled"
		granule = "128K"
	END
}

# json PATH WANTED VERB...: the value at PATH (as Python writes an index) of what VERB prints.
json() {
	local path=$1 wanted=$2
	shift 2
	echo "+ smcctl -j $*"
	smcctl -j "$@" | /usr/bin/python3 -c '
import json, sys
path, wanted = sys.argv[1:3]
value = json.load(sys.stdin)
got = eval("value" + path, {"value": value})
sys.exit(0 if str(got) == wanted else f"value{path} is {got!r}, wanted {wanted}; all: {value}")
' "$path" "$wanted"
}

on_the_target() {
	if [ "$NODE" = target ]; then
		check smcctl status
		json '["daemon"]["node"]' target status
		check smcctl export extra --host 1M --mode 0644 --readonly
		json '["exports"][0]["name"]' extra regions
		json '["exports"][0]["readonly"]' True regions
		json '["exports"][0]["mode"]' 420 regions
		check smcctl regions
		check smcctl unexport extra
		check_fails smcctl unexport extra
		json '["name"]' more export more --host 8K
		json '["unexported"]' True unexport more
	fi
	barrier ended
}

on_the_client() {
	if [ "$NODE" = client ]; then
		json '["path"]' /smc/target/r attach target:r
		check smcctl attach /smc/target/r
		json '["kernel"]["attached"]["regions"]' 1 status
		json '["attached"][0]["state"]' active regions
		json '["attached"][0]["size"]' 1048576 regions
		json '["params"][0]["key"]' cto get target:r
		check_equal "cto" "$(smcctl get target:r cto)" yes
		json '["params"][0]["origin"]' default get target:r
		json '["params"][1]["value"]' 200 get target:r
		json '["params"][1]["origin"]' configuration get target:r
		check smcctl set target:r flush_after_ms=200 # the same, but from somebody
		json '["params"][1]["origin"]' set get target:r
		check smcctl set target:r cto=off flush_after_ms=50
		check_equal "flush_after_ms" "$(smcctl get target:r flush_after_ms)" 50
		json '["params"][0]["origin"]' set get target:r
		json '["params"][2]["origin"]' export get target:r
		check smcctl set target:r cto=on flush_after_ms=100
		json '["peers"][0]["node"]' client peers
		check smcctl peers
		json '["out"][0]["node"]' target sessions
		check smcctl sessions
	fi
	barrier ended
	on target json '["in"][0]["node"]' client sessions
	barrier looked
}

# granule_is REGION BYTES ORIGIN
granule_is() {
	check_equal "granule" "$(smcctl get "$1" granule)" "$2"
	json '["params"][0]["origin"]' "$3" get "$1" granule
}

granules_are_hinted_ruled_and_set() {
	on target export_file hinted 64K --granule 1M
	on target export_file ruled 64K --granule 64K
	barrier exported
	if [ "$NODE" = client ]; then
		granule_is target:r 4096 default
		check smcctl attach target:hinted
		granule_is target:hinted 1048576 export
		check smcctl attach target:ruled
		granule_is target:ruled 131072 configuration
		json '["set"]["granule"]' 65536 set target:ruled granule=64K
		granule_is target:ruled 65536 set
		check smcctl set target:ruled granule=4096
		granule_is target:ruled 4096 set
		check_fails smcctl set target:ruled granule=2K
		check_fails smcctl set target:ruled granule=12K
		smcctl set target:ruled granule=2M >/tmp/said 2>&1 || true
		check grep -q 'from 4K to 1M' /tmp/said
		granule_is target:ruled 4096 set
		check smcctl detach target:ruled
		check smcctl attach target:ruled
		granule_is target:ruled 131072 configuration # anew
		check smcctl detach target:ruled
		check smcctl detach target:hinted
	fi
	barrier ended
	on target unexport hinted
	on target unexport ruled
}

flush_acquire_and_stats() {
	local ahead
	if [ "$NODE" = client ]; then
		check smcctl set target:r flush_after_ms=3600000
		# Nor shall the kernel's own flusher send what the flush is to send.
		echo 0 >/proc/sys/vm/dirty_writeback_centisecs
		# Nor is anything read ahead: the map of pages is exact.
		for ahead in /sys/class/bdi/smcfs-*/read_ahead_kb; do
			echo 0 >"$ahead"
		done
		probe_open a
		p a "open rw /smc/target/r"
		p a "map rw shared 0 0"
		p a "store 0 8192 5"
		json '["regions"][0]["dirty_bytes"]' 8192 stats target:r
		json '["processes"][0]["command"]' probe ps
		json '["processes"][0]["dirty_bytes"]' 8192 ps
		check smcctl ps
		runs_are 0+8192=dirty
		check smcctl flush target:r
		json '["regions"][0]["dirty_bytes"]' 0 stats
		runs_are 0+8192=clean
		# Its open alone would drop what is clean.
		check smcctl set target:r cto=off
		check smcctl acquire target:r --offset 0 --length 4096
		runs_are 4096+4096=clean
		check smcctl set target:r cto=on
		p a "expect 0 8192 5"
		p a "load 81920 1"
		p a "store 16384 1 9"
		runs_are 0+8192=clean 16384+4096=dirty 81920+4096=clean
		smcctl inspect target:r >/tmp/map
		cat /tmp/map
		check grep -q -e '--\.\.#\.' /tmp/map
		check grep -q 'one character is 4K' /tmp/map
		check smcctl flush target:r
		check smcctl stats target:r
		check_equal "lines of JSON" \
			"$(smcctl -j stats --watch --interval 0.5 --count 2 | grep -c per_second)" 2
		check_fails smcctl detach target:r # it is mapped
		probe_close a
		check smcctl set target:r flush_after_ms=100
		json '["discarded_bytes"]' 0 detach target:r
		check_fails smcctl detach target:r
	fi
	barrier ended
	on target probe_script "open r /dev/shm/r" "pexpect 0 8192 5"
}

# runs_are OFFSET+LENGTH=STATE...: of target:r, and no other page is here.
runs_are() {
	smcctl -j inspect target:r >/tmp/runs
	check /usr/bin/python3 - "$@" <<-'PY'
		import json, re, sys
		runs = json.load(open("/tmp/runs"))["runs"]
		pages = {at: run["state"] for run in runs
		         for at in range(run["offset"], run["offset"] + run["length"], 4096)}
		for wanted in sys.argv[1:]:
		    offset, length, state = re.fullmatch(r"(\d+)\+(\d+)=(.*)", wanted).groups()
		    for at in range(int(offset), int(offset) + int(length), 4096):
		        if pages.pop(at, "absent") != state:
		            sys.exit(f"page at {at} is not {state}: {runs}")
		if pages:
		    sys.exit(f"pages at {sorted(pages)} are here, too: {runs}")
	PY
}

ping_measures() {
	if [ "$NODE" = client ]; then
		smcctl -j ping target --seconds 1 >/tmp/ping
		cat /tmp/ping
		/usr/bin/python3 - <<-'PY'
			import json
			ping = json.load(open("/tmp/ping"))
			assert 0 < ping["control_us"]["min"] <= ping["control_us"]["max"], ping
			assert 0 < ping["rdma_us"]["min"] <= ping["rdma_us"]["max"], ping
			assert ping["bandwidth_mbps"] > 0 and ping["mtu"] in (256, 512, 1024, 2048, 4096), ping
			assert ping["addresses"], ping
		PY
		check smcctl ping target --seconds 1 --no-rdma
		check_fails smcctl ping nobody
	fi
	barrier ended
}

events_are_told() {
	if [ "$NODE" = client ]; then
		smcctl -j events --count 2 --seconds 60 >/tmp/events &
		local pid=$!
		until_events_listen
		smcctl attach target:r
		smcctl detach target:r
		check wait $pid
		cat /tmp/events
		check grep -q '"kind": *"region"' /tmp/events
		check grep -q '"state": *"active"' /tmp/events
		/usr/bin/python3 -c 'import json; [json.loads(line) for line in open("/tmp/events")]'
	fi
	barrier ended
}
# Its connection to the daemon is there.
until_events_listen() { eventually 20 daemon_has_a_caller; }
daemon_has_a_caller() { ss -Hx state established | grep -q smcfsd.sock; }

doctor_diagnoses() {
	if [ "$NODE" = client ]; then
		smcctl doctor || true
		smcctl -j doctor >/tmp/doctor || true
		/usr/bin/python3 - <<-'PY'
			import json
			checks = json.load(open("/tmp/doctor"))
			text = json.dumps(checks)
			for word in ("module", "rxe0", "daemon", "munge"):
			    assert word in text.lower(), (word, text)
		PY
	fi
	barrier ended
}

# --- top, and what it counts -------------------------------------------------------------

TOP_REGION=target:counted
TOP_PAGE=4096

# An attached region of which nothing was counted yet, nothing read ahead, nothing sent but when asked.
counted_region() {
	local ahead
	check smcctl attach $TOP_REGION
	check smcctl set $TOP_REGION flush_after_ms=3600000 "$@"
	echo 0 >/proc/sys/vm/dirty_writeback_centisecs
	for ahead in /sys/class/bdi/smcfs-*/read_ahead_kb; do
		echo 0 >"$ahead"
	done
	probe_open top
	p top "open rw /smc/target/counted"
	p top "map rw shared 0 0"
	p top random
}

counted_region_ends() {
	probe_close top
	check smcctl detach $TOP_REGION
}

# one_byte_in OFFSET STEP VALUE: a byte in each STEP of the page at OFFSET.
one_byte_in() {
	local at
	for ((at = $1; at < $1 + TOP_PAGE; at += $2)); do
		p top "store $at 1 $3" >/dev/null
	done
}

# counted_is KEY=VALUE...: of the region since it was attached; a key is a Python index without quotes.
counted_is() {
	smcctl -j stats $TOP_REGION >/tmp/counted
	check /usr/bin/python3 - "$@" <<-'PY'
		import json, sys
		row = json.load(open("/tmp/counted"))["regions"][0]
		for wanted in sys.argv[1:]:
		    keys, value = wanted.split("=")
		    got = row
		    for key in keys.split("."):
		        got = got[key]
		    if str(got) != value:
		        sys.exit(f"{keys} is {got}, wanted {value}: {row}")
	PY
}

counters_count_what_was_done() {
	on target export_file counted 1M
	on target export_file whole 64K --writers exclusive
	barrier exported
	if [ "$NODE" = client ]; then
		counted_region
		counted_is stats.fetch_ops=0 latency_ns.fetch.count=0 latency_ns.fetch.p50=None \
			amplification=None
		p top "load 0 $((8 * TOP_PAGE))"
		counted_is stats.fetch_faults=8 stats.fetch_ops=8 stats.fetch_bytes=$((8 * TOP_PAGE)) \
			stats.write_faults=0 latency_ns.fetch.count=8 latency_ns.fault.count=8 \
			latency_ns.write.count=0 latency_ns.barrier.count=0
		p top "load 0 $((8 * TOP_PAGE))" # they are here
		one_byte_in 0 64 7
		counted_is stats.fetch_faults=8 latency_ns.fault.count=8 stats.write_faults=1 \
			stats.flush_bytes=0 amplification=None
		p top "fsync"
		# 64 units of 64 bytes, and one byte in each that differs.
		counted_is stats.flush_bytes=$TOP_PAGE stats.sampled_sent_bytes=$TOP_PAGE \
			stats.sampled_changed_bytes=64 amplification=64.0 \
			latency_ns.write.count=1 stats.barriers=1 latency_ns.barrier.count=1
		p top "fsync" # of nothing
		counted_is latency_ns.write.count=1 stats.barriers=2 latency_ns.barrier.count=2
		check /usr/bin/python3 - <<-'PY'
			import json
			row = json.load(open("/tmp/counted"))["regions"][0]
			for kind, latency in row["latency_ns"].items():
			    assert 0 < latency["p50"] <= latency["p99"] <= latency["p999"] < 60e9, (kind, row)
			# A fault waits for its fetch.
			assert row["latency_ns"]["fault"]["p999"] > row["latency_ns"]["fetch"]["p50"], row
		PY
		counted_region_ends
	fi
	barrier ended
}

amplification_is_measured() {
	if [ "$NODE" = client ]; then
		counted_region merge_unit=4
		one_byte_in $((16 * TOP_PAGE)) 64 7
		p top "fsync"
		counted_is stats.flush_bytes=256 amplification=4.0
		counted_region_ends
		counted_region
		p top "pwrite $((32 * TOP_PAGE)) 100 9" # all of it is wanted, so none of it is too much
		p top "pwrite $((32 * TOP_PAGE)) 100 9"
		p top "fsync"
		counted_is stats.flush_bytes=100 stats.sampled_changed_bytes=100 amplification=1.0
		counted_region_ends
		counted_region
		# A page where each of 64 bytes is new, and as many pages as make sure that some are measured.
		p top "store $((48 * TOP_PAGE)) $((40 * TOP_PAGE)) 11"
		p top "fsync"
		counted_is stats.flush_bytes=$((40 * TOP_PAGE)) amplification=1.0
		check /usr/bin/python3 -c '
import json
row = json.load(open("/tmp/counted"))["regions"][0]
assert 1 * 4096 <= row["stats"]["sampled_sent_bytes"] <= 4 * 4096, row' # one in 16
		counted_region_ends
		# Without twins there is nothing to compare with.
		check smcctl attach target:whole
		probe_script "open rw /smc/target/whole" "map rw shared 0 0" "store 0 1 3" fsync
		json '["regions"][0]["amplification"]' None stats target:whole
		check smcctl detach target:whole
	fi
	barrier ended
	on target probe_script "open r /dev/shm/counted" "pexpect $((32 * TOP_PAGE)) 100 9" \
		"pexpect $((48 * TOP_PAGE)) $((40 * TOP_PAGE)) 11"
}

# What all lines of /tmp/top say together: KIND=COUNT..., exactly.
top_has_seen() {
	/usr/bin/python3 - "$@" <<-'PY'
		import json, sys
		# The last line may not be whole.
		lines = open("/tmp/top").read().split("\n")[:-1]
		rows = [(line["interval_s"], row) for line in map(json.loads, lines)
		        for row in line["regions"]]
		for interval, row in rows:
		    assert row["name"] == "counted", row
		    for latency in row["latency_ns"].values():
		        if latency["count"]:
		            assert 0 < latency["p50"] <= latency["p99"] <= latency["p999"], row
		        else:
		            assert latency["p50"] is latency["p999"] is None, row
		for wanted in sys.argv[1:]:
		    kind, count = wanted.split("=")
		    got = sum(row["latency_ns"][kind]["count"] for _, row in rows)
		    assert got == int(count), (kind, got, count)
		fetched = sum(interval * row["per_second"]["fetch_bytes"] for interval, row in rows)
		assert abs(fetched - 5 * 4096) <= len(rows), fetched
	PY
}

top_tells_intervals() {
	local pid
	if [ "$NODE" = client ]; then
		counted_region
		check_equal "JSON and count" "$(smcctl -j top -i 0.1 -n 2 | grep -c per_second)" 2
		smcctl -j top $TOP_REGION -i 0.2 >/tmp/top &
		pid=$!
		eventually 20 test -s /tmp/top
		p top "load $((64 * TOP_PAGE)) $((5 * TOP_PAGE))"
		p top "fsync"
		p top "fsync"
		p top "fsync"
		eventually 20 top_has_seen fetch=5 fault=5 barrier=3 write=0
		kill $pid
		wait $pid || true
		check top_has_seen fetch=5 fault=5 barrier=3 write=0
		# Everybody may look. No terminal: tables, one after the other.
		setpriv --reuid=1000 --regid=1000 --clear-groups smcctl top -i 0.1 -n 2 >/tmp/tables
		cat /tmp/tables
		check_equal "tables" "$(grep -c '^REGION .*FETCH/s .*AMP .*BARRIER p50/p99' /tmp/tables)" 2
		check_equal "rows" "$(grep -c '^target:counted ' /tmp/tables)" 2
		check_fails smcctl top target:absent -n 1
		counted_region_ends
		check_equal "without a region" "$(smcctl top -i 0.1 -n 1)" "(none)"
	fi
	barrier ended
}

# A terminal of 12 lines, 70 columns: what is drawn, what keys and Ctrl-C do, and that all is as it was.
top_draws_on_a_terminal() {
	if [ "$NODE" = client ]; then
		counted_region
		check /usr/bin/python3 - <<-'PY'
			import fcntl, os, pty, select, signal, struct, termios, time

			def start(*arguments):
			    pid, fd = pty.fork()
			    if pid == 0:
			        os.environ["TERM"] = "xterm"
			        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 70, 0, 0))
			        os.execvp("smcctl", ["smcctl", "top", *arguments])
			    return pid, fd

			def until(fd, seen, text, seconds=60):
			    end = time.monotonic() + seconds
			    while text not in seen:
			        if not select.select([fd], [], [], max(end - time.monotonic(), 0))[0]:
			            raise SystemExit(f"{text!r} is not among {seen!r}")
			        try:
			            seen += os.read(fd, 65536)
			        except OSError: # its end
			            raise SystemExit(f"ended without {text!r}: {seen!r}")
			    return seen

			def echoes(fd):
			    return bool(termios.tcgetattr(fd)[3] & termios.ECHO)

			def ended(pid):
			    status = os.waitpid(pid, 0)[1]
			    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, status

			ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
			for end in (b"q", b"\x03"):
			    pid, fd = start("-i", "0.3")
			    seen = until(fd, b"", b"target:counted")
			    assert ENTER in seen and LEAVE not in seen, seen
			    assert not echoes(fd)
			    for line in seen.split(b"\x1b[H")[-1].replace(b"\x1b[K", b"").split(b"\r\n"):
			        assert len(line) <= 70 + len(b"\x1b[J"), line
			    os.write(fd, b"s")
			    until(fd, b"", b"by name")
			    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 3, 70, 0, 0))
			    until(fd, b"", b"... and 3 more")
			    os.write(fd, end)
			    after = until(fd, b"", LEAVE + b"smcctl top") # what was shown last stays
			    assert echoes(fd)
			    ended(pid)
			pid, fd = start("-i", "0.1", "-n", "2")
			until(fd, b"", LEAVE)
			ended(pid)
			# Stopped, the terminal is the shell's.
			pid, fd = start("-i", "0.3")
			until(fd, b"", b"target:counted")
			os.kill(pid, signal.SIGTSTP)
			os.waitpid(pid, os.WUNTRACED)
			until(fd, b"", LEAVE)
			assert echoes(fd)
			os.kill(pid, signal.SIGCONT)
			until(fd, b"", ENTER)
			os.kill(pid, signal.SIGTERM)
			until(fd, b"", LEAVE)
			assert echoes(fd)
			ended(pid)
		PY
		counted_region_ends
	fi
	barrier ended
}

usage_and_failure() {
	local rc=0
	if [ "$NODE" = client ]; then
		smcctl no-such-verb 2>/dev/null || rc=$?
		check_equal "exit of a usage error" $rc 2
		rc=0
		smcctl attach not-a-region 2>/dev/null || rc=$?
		check_equal "exit of a bad name" $rc 2
		rc=0
		smcctl attach target:absent >/tmp/out 2>&1 || rc=$?
		check_equal "exit of a failure" $rc 1
		check grep -q 'target:absent\|absent' /tmp/out
		rc=0
		setpriv --reuid=1000 --regid=1000 --clear-groups smcctl set target:r cto=off 2>/tmp/out || rc=$?
		check_equal "exit of a refusal" $rc 1
		check smcctl --help
		check smcctl --version
	fi
	barrier ended
}

without_the_daemon() {
	if [ "$NODE" = client ]; then
		check smcctl attach target:r
		# Killed: one that is told to stop detaches what nobody uses.
		kill_daemon
		check_fails smcctl status
		json '["attached"][0]["name"]' r regions
		json '["daemon"]' None status || true
		check smcctl regions
		check smcctl sessions
		check smcctl peers
		check smcctl stats
		check smcctl ps
		smcctl doctor || true
		check_fails smcctl export x --host 4096
		start_daemon
	fi
	barrier ended
}

case_ "the product starts, and a region is there" start
case_ "export, unexport, status and regions on the target" on_the_target
case_ "attach, get, set, peers and sessions on the client" on_the_client
case_ "a granule is hinted, ruled and set" granules_are_hinted_ruled_and_set
case_ "flush, acquire, stats, ps and detach" flush_acquire_and_stats
case_ "ping measures the control and the RDMA path" ping_measures
case_ "events are told as they happen" events_are_told
case_ "doctor says what is there and what is not" doctor_diagnoses
case_ "counters and latencies count what was done, to the last one" counters_count_what_was_done
case_ "amplification is bytes sent by bytes changed" amplification_is_measured
case_ "top tells what happened in each interval" top_tells_intervals
case_ "top draws on a terminal, and gives it back" top_draws_on_a_terminal
case_ "usage errors and failures have exit codes of their own" usage_and_failure
case_ "without the daemon the kernel's knowledge is shown" without_the_daemon
case_ "everything is put away, and the module unloads" product_stop
pass
