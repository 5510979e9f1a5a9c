#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: nodes=3 nics=2 mtu=9000 kernels=6.1,6.12 timeout=1200
#
#     client ---- eth0: names, daemons (10.77.0.0/24, fd77::/64) ---- target, node3
#            `--- eth1: RDMA of "target" (10.78.0.0/24) -------------'
#
# Claim: a name costs something only when it is a peer's; peers are found by host name, IPv4 and IPv6
# address, their RDMA addresses being others; all mounts show one cache; a dead peer does not slow a
# live one; and the module lives beside smc and smc_diag.
. "$SMC_ROOT/tests/vm/lib-product.sh"
export REQUEST_TIMEOUT_MS=2000

start() {
	case $NODE in
	target)
		write_config
		printf '[rdma]\naddresses = ["10.78.0.1"]\n' >>"$PRODUCT_CONFIG"
		start_daemon
		;;
	client)
		write_client_config
		load_module
		mount_smc
		start_daemon
		eventually 30 test -d /smc/target
		;;
	node3) start_daemon ;;
	esac
	barrier started
	on target export_file r 1M
	on node3 export_file r 1M
	barrier exported
}
write_client_config() {
	write_config
	cat >>"$PRODUCT_CONFIG" <<-END
		[[peer]]
		name = "by-ipv4"
		address = "10.77.0.3"
		[[peer]]
		name = "by-ipv6"
		address = "fd77::3"
		[[peer]]
		name = "by-name"
		address = "node3-b"
		[[peer]]
		name = "nobody-there"
		address = "10.77.0.99"
	END
}

control_and_data_apart() {
	if [ "$NODE" = client ]; then
		local before
		before=$(cat /sys/class/net/eth1/statistics/tx_bytes)
		probe_script "open rw /smc/target/r" "pwrite 0 1M 5" "fsync" "pexpect 0 1M 5"
		smcctl -j sessions
		check grep -q rxe1 <(smcctl -j sessions)
		check [ $(($(cat /sys/class/net/eth1/statistics/tx_bytes) - before)) -gt 1000000 ]
	fi
	barrier stored
	on target probe_script "open r /dev/shm/r" "pexpect 0 1M 5"
}

peers_by_address() {
	local peer
	if [ "$NODE" = client ]; then
		for peer in by-ipv4 by-ipv6 by-name; do
			check probe_script "open r /smc/$peer/r" "size 1M" "pexpect 0 4096 0"
			check test "$(ls /smc/$peer)" = r
			check smcctl detach "$peer:r"
		done
	fi
	barrier looked
}

absent_names() {
	if [ "$NODE" = client ]; then
		local before after n start end slab
		check_equal "names at the top" "$(ls -m -w 0 /smc)" \
			"by-ipv4, by-ipv6, by-name, client, nobody-there, node3, target"
		check_fails test -e /smc/.git
		for ((n = 0; n < 100; n++)); do [ ! -e /smc/absent-$n ]; done
		before=$(tx_packets)
		slab=$(slab_objects)
		start=$SECONDS
		for ((n = 0; n < 10000; n++)); do
			[ ! -e "/smc/absent-$n" ] || fail "there is a /smc/absent-$n"
		done
		end=$SECONDS
		after=$(tx_packets)
		echo "10,000 lookups in $((end - start)) s, $((after - before)) packets, slab $slab to $(slab_objects)"
		check [ $((end - start)) -le 30 ]
		# Daemons say a word now and then; lookups would be thousands.
		check [ $((after - before)) -le 100 ]
		check [ $(($(slab_objects) - slab)) -le 64 ]
		check_equal "regions after all that" "$(smcctl -j regions | grep -c absent || true)" 0
		# A name of a known peer is asked for once, and not again for some seconds.
		check_fails test -e /smc/target/absent
		before=$(tx_packets)
		for ((n = 0; n < 500; n++)); do [ ! -e /smc/target/absent ]; done
		check [ $(($(tx_packets) - before)) -le 100 ]
	fi
	barrier looked
}
tx_packets() { awk "{ n += \$1 } END { print n }" /sys/class/net/eth[01]/statistics/tx_packets; }
slab_objects() { awk '/^smcfs_inode/ {print $2}' /proc/slabinfo; }

unreachable_peer() {
	if [ "$NODE" = client ]; then
		check probe_script "within 30000 ! EHOSTUNREACH open r /smc/nobody-there/r"
		check grep -q nobody-there <(smcctl peers)
		check_fails smcctl attach nobody-there:r
		# At once, from what is remembered.
		check probe_script "within 3000 ! EHOSTUNREACH open r /smc/nobody-there/r"
	fi
	barrier looked
}

one_cache() {
	if [ "$NODE" = client ]; then
		mkdir -p /mnt/second /mnt/bound
		check mount -t smcfs smcfs /mnt/second
		probe_open a
		p a "open rw /smc/target/r"
		p a "map rw shared 0 0"
		p a "store 0 100 1"
		probe_open b
		p b "open rw /mnt/second/target/r"
		p b "map rw shared 0 0"
		p b "expect 0 100 1"
		p b "store 50 50 2"
		p a "expect 50 50 2"
		# A bind mount in a mount namespace of its own.
		check unshare -m bash -c 'mount --bind /smc/target /mnt/bound &&
			printf "%s\n" "open rw /mnt/bound/r" "map rw shared 0 0" "expect 0 50 1" \
				"expect 50 50 2" "store 0 10 3" | probe'
		p a "expect 0 10 3"
		p b "expect 0 10 3"
		check [ "$(stat -c %i /smc/target/r)" = "$(stat -c %i /mnt/second/target/r)" ]
		probe_close a
		probe_close b
		check umount /mnt/second
		check probe_script "open r /smc/target/r" "pexpect 0 10 3"
	fi
	barrier looked
}

# node3 stops answering with requests on their way; barriers on target go on at their pace.
dead_peer_beside_a_live_one() {
	if [ "$NODE" = client ]; then
		local alone beside
		probe_script "open rw /smc/node3/r" "map rw shared 0 0" "store 0 1M 1" "fsync" >/dev/null
		barriers_on_target
		alone=$(barriers_on_target)
		probe_open dead
		p dead "open rw /smc/node3/r"
		p dead "map rw shared 0 0"
		p dead "load 0 4096"
		check vm_ctl stop node3
		p dead "store 0 4096 2"
		p_start dead "! EIO fsync"
		lookup_at_dead_peer &
		beside=$(barriers_on_target)
		# It ends by its deadline, with the peer still dead.
		p_end dead
		check vm_ctl cont node3
		wait $!
		echo "100 barriers: $alone ms alone, $beside ms beside a dead peer"
		check [ "$beside" -le $((alone * 2 + 500)) ]
		probe_close dead
	fi
	barrier looked
}
# Only to keep the dead peer asked meanwhile; unreachable_peer tells how such a lookup ends.
lookup_at_dead_peer() { probe_script "open r /smc/node3/never-seen" >/dev/null 2>&1 || true; }
barriers_on_target() {
	local n start
	start=$(date +%s%3N)
	{
		echo "open rw /smc/target/r"
		echo "map rw shared 0 0"
		for ((n = 0; n < 100; n++)); do
			echo "store $((n * 4096)) 8192 $n"
			echo "msync 0 1M"
		done
	} | probe >/dev/null
	echo $(($(date +%s%3N) - start))
}

# The kernel's own SMC has the module names smc and smc_diag and a netlink family of its own.
beside_smc() {
	if [ "$NODE" = client ]; then
		check modprobe -a smc smc_diag
		check probe_script "open rw /smc/target/r" "pwrite 0 10 7" "fsync"
		check umount /smc
		check stop_daemon
		check rmmod smcfs
		check load_module # now smc is first
		check mount_smc
		check start_daemon
		eventually 30 test -d /smc/target
		check probe_script "open r /smc/target/r" "pexpect 0 10 7"
		check modprobe -r smc_diag
	fi
	barrier looked
}

stop() {
	if [ "$NODE" = client ]; then
		umount /smc
		stop_daemon
		rmmod smcfs
	fi
	barrier client-stopped
	[ "$NODE" = client ] || stop_daemon
}

case_ "the product starts on all nodes" start
case_ "control and data take different networks" control_and_data_apart
case_ "peers are found by IPv4, IPv6 and host name" peers_by_address
case_ "a name that is nobody's costs nothing" absent_names
case_ "an unreachable peer fails in time, and is named" unreachable_peer
case_ "all mounts show one cache" one_cache
case_ "a dead peer does not slow a live one" dead_peer_beside_a_live_one
case_ "the module loads before and after smc and smc_diag" beside_smc
case_ "everything is put away, and the module unloads" stop
pass
