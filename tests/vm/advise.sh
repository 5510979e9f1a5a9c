#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: nodes=3 mtu=9000 kernels=6.1,6.12 timeout=900
#
#     client: smcctl advise, programs that do what they are advised against  -- rxe --  target
#     node3: the same                                                        -- rxe -----'
#
# Claim: smcctl advise finds the pages that several threads or processes dirty in turns, with the right
# PIDs, those that another node dirties, too, and regions whose page cache is of no use; it finds nothing
# where there is nothing; and it leaves nothing behind.
. "$SMC_ROOT/tests/vm/lib-product.sh"

ROUNDS=4
INSTANCES=/sys/kernel/tracing/instances

start() {
	product_start
	on target export_file shared 64K
	on target export_file alone 64K
	on target export_file stream 4M
	barrier exported
	if [ "$NODE" != target ]; then
		local region
		for region in shared alone stream; do
			check smcctl attach target:$region
			# Only barriers send.
			check smcctl set target:$region flush_after_ms=3600000
		done
		echo 0 >/proc/sys/vm/dirty_writeback_centisecs
	fi
	barrier attached
}

# advise_begin ARGUMENTS...: into /tmp/advice. It watches when this returns.
advise_begin() {
	smcctl -j advise --time 600 "$@" >/tmp/advice &
	ADVISE_PID=$!
	eventually 30 advise_watches
}
advise_watches() { [ "$(cat "$INSTANCES/smcctl-$ADVISE_PID/events/smcfs/smcfs_fetch/enable")" = 1 ]; }

# As by Ctrl-C: what was seen is told.
advise_end() {
	kill -INT "$ADVISE_PID"
	check wait "$ADVISE_PID"
	cat /tmp/advice
	check test ! -e "$INSTANCES/smcctl-$ADVISE_PID"
}

# advice_is EXPRESSION...: of Python; r is the regions by name.
advice_is() {
	check /usr/bin/python3 - "$@" <<-'PY'
		import json, sys
		a = json.load(open("/tmp/advice"))
		assert a["lost_events"] == 0, a
		r = {region["name"]: region for region in a["regions"]}
		for wanted in sys.argv[1:]:
		    if not eval(wanted):
		        sys.exit(f"not so: {wanted}: {a}")
	PY
}

# Two processes with a mapping each: a writes at 0, b at 2048 of the second page. A third one has a
# page, and a region, for itself.
processes_are_found() {
	local i a b
	if [ "$NODE" = client ]; then
		for i in a b c; do
			probe_open $i
			p $i "open rw /smc/target/$([ $i = c ] && echo alone || echo shared)"
			p $i "map rw shared 0 0"
			p $i random
		done
		a=${PROBE_PID[a]} b=${PROBE_PID[b]}
		advise_begin
		for ((i = 1; i <= ROUNDS; i++)); do
			p a "store 4096 1 $i"
			p b "store 6144 1 $i"
			p a "store 0 1 $i" # a page of its own
			p c "store 0 1 $i"
			p a fsync
			p c fsync
		done
		advise_end
		advice_is 'len(r["shared"]["contended"]) == 1' \
			'r["alone"]["contended"] == [] and r["alone"]["advice"] == []' \
			'r["stream"]["stores"] == 0' \
			"r['alone']['stores'] == $ROUNDS and r['alone']['pages'] == 1"
		advice_is 'r["shared"]["contended"][0]["offset"] == 4096' \
			"r['shared']['contended'][0]['epochs'] == $ROUNDS" \
			'r["shared"]["contended"][0]["processes"] == 2' \
			'r["shared"]["contended"][0]["same_place"] is False' \
			"{w['pid']: w['places'][0]['offset'] for w in r['shared']['contended'][0]['writers']} == {$a: 0, $b: 2048}" \
			"all(w['times'] == $ROUNDS and w['command'] == 'probe' for w in r['shared']['contended'][0]['writers'])"
		# The same word, and only this region is watched.
		advise_begin target:shared
		for ((i = 1; i <= ROUNDS; i++)); do
			p a "store 8192 1 $((i + 100))"
			p b "pwrite 8196 1 $((i + 100))"
			p c "store 0 1 $((i + 100))"
			p a fsync
		done
		advise_end
		advice_is 'list(r) == ["shared"] and len(r["shared"]["contended"]) == 1' \
			'r["shared"]["contended"][0]["offset"] == 8192' \
			'r["shared"]["contended"][0]["same_place"] is True' \
			"{w['pid'] for w in r['shared']['contended'][0]['writers']} == {$a, $b}"
		for i in a b c; do
			probe_close $i
		done
	fi
	barrier ended
}

# Two threads in turns on the first page, each alone on a page of its own.
threads_are_found() {
	if [ "$NODE" = client ]; then
		advise_begin target:shared
		/usr/bin/python3 - >/tmp/threads <<-'PY'
			import mmap, os, threading
			fd = os.open("/smc/target/shared", os.O_RDWR)
			memory = mmap.mmap(fd, 65536)
			turn = threading.Condition()
			whose = 0

			def work(me):
			    global whose
			    for i in range(4):
			        with turn:
			            turn.wait_for(lambda: whose == me)
			            memory[300 * me] = 50 + i
			            memory[(4 + me) * 4096] = 50 + i
			            memory.flush()
			            whose = 1 - me
			            turn.notify_all()

			def begin(me):
			    print(threading.get_native_id(), flush=True)
			    work(me)

			threads = [threading.Thread(target=begin, args=(me,)) for me in (0, 1)]
			for thread in threads:
			    thread.start()
			for thread in threads:
			    thread.join()
			print(os.getpid())
		PY
		advise_end
		advice_is 'len(r["shared"]["contended"]) == 1' \
			'r["shared"]["contended"][0]["offset"] == 0' \
			'r["shared"]["contended"][0]["processes"] == 1' \
			'r["shared"]["contended"][0]["threads"] == 2' \
			'{w["tid"] for w in r["shared"]["contended"][0]["writers"]} == {int(n) for n in open("/tmp/threads").read().split()[:2]}' \
			'{w["pid"] for w in r["shared"]["contended"][0]["writers"]} == {int(open("/tmp/threads").read().split()[2])}'
	fi
	barrier ended
}

# Three times through 4 MiB, with an acquire before each.
streams_are_found() {
	local i
	if [ "$NODE" = client ]; then
		advise_begin target:stream
		probe_open s
		p s "open r /smc/target/stream"
		for i in 1 2 3; do
			p s "acquire 0 0"
			dd if=/smc/target/stream of=/dev/null bs=64K status=none
		done
		probe_close s
		advise_end
		advice_is '[a["kind"] for a in r["stream"]["advice"]] == ["direct_read"]' \
			'r["stream"]["advice"][0]["fetched_bytes"] == 3 * 4194304' \
			'r["stream"]["advice"][0]["rounds"] == 3 and r["stream"]["advice"][0]["in_order"] > 0.9' \
			'r["stream"]["contended"] == []'
		# For people, and with nothing to say.
		smcctl advise target:alone --time 0.5 >/tmp/text
		cat /tmp/text
		check grep -q '^target:alone: ' /tmp/text
		check grep -q 'nothing to advise' /tmp/text
	fi
	barrier ended
}

# Both nodes write to page 9, each its own unit, and to a page of its own.
nodes_are_found() {
	local i at=$((4096 * 9)) own=$((4096 * 10))
	if [ "$NODE" != target ]; then
		if [ "$NODE" = node3 ]; then
			at=$((at + 1024))
			own=$((own + 4096))
		fi
		echo '{}' >/tmp/other
		advise_begin target:shared --with /tmp/other
		probe_open n
		p n "open rw /smc/target/shared"
		p n "map rw shared 0 0"
		for i in 1 2 3; do
			p n "store $at 1 $i"
			p n "store $own 1 $i"
			p n fsync
		done
		probe_close n
	fi
	if [ "$NODE" = node3 ]; then
		echo '{"regions": []}' >/tmp/other
		advise_end
		put advice "$(/usr/bin/python3 -c 'import json; print(json.dumps(json.load(open("/tmp/advice"))))')"
	elif [ "$NODE" = client ]; then
		get advice >/tmp/other # meanwhile, as both were watching
		advise_end
		advice_is 'r["shared"]["contended"] == []' \
			'r["shared"]["dirtied"] == [{"offset": 9 * 4096, "length": 2 * 4096}]' \
			'r["shared"]["shared"] == [{"host": "node3", "offset": 9 * 4096, "length": 4096}]'
	fi
	barrier ended
	on target probe_script "open r /dev/shm/shared" "pexpect $((4096 * 9)) 1 3" \
		"pexpect $((4096 * 9 + 1024)) 1 3"
}

nothing_stays_behind() {
	local pid
	if [ "$NODE" = client ]; then
		check_fails setpriv --reuid=1000 --regid=1000 --clear-groups smcctl advise --time 0.1
		check_fails smcctl advise target:absent --time 0.1
		# Killed, it leaves an instance, which the next one removes.
		advise_begin target:alone
		pid=$ADVISE_PID
		kill -KILL "$pid"
		wait "$pid" || true
		check test -e "$INSTANCES/smcctl-$pid"
		check smcctl advise target:alone --time 0.1
		check test ! -e "$INSTANCES/smcctl-$pid"
		check_equal "instances" "$(find "$INSTANCES" -mindepth 1 -maxdepth 1 | wc -l)" 0
	fi
	if [ "$NODE" != target ]; then
		check smcctl detach target:shared
		check smcctl detach target:alone
		check smcctl detach target:stream
	fi
	barrier ended
}

case_ "the product starts, and regions are there" start
case_ "processes that dirty a page in turns are found, with PIDs and places" processes_are_found
case_ "threads that dirty a page in turns are found" threads_are_found
case_ "a region that is streamed over and over is found" streams_are_found
case_ "a page that two nodes dirty is found when both reports are put together" nodes_are_found
case_ "nothing stays behind, whatever ends it" nothing_stays_behind
case_ "everything is put away, and the module unloads" product_stop
pass
