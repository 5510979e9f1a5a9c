#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""Claim: the search of a guest's log finds each kind of report that the kernels can make, says
which case was running, and is not misled by what is no report."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "vm/lib"))

from scan import scan  # noqa: E402

# The line of each report by which it has to be found, as the kernels print it.
REPORTS = {
    "KASAN": "BUG: KASAN: slab-use-after-free in smcfs_region_put+0x1a/0x80 [smcfs]",
    "KASAN 6.1": "BUG: KASAN: use-after-free in smcfs_region_put+0x1a/0x80 [smcfs]",
    "UBSAN": "UBSAN: array-index-out-of-bounds in /smc/kmod/region.c:52:15",
    "lock order": "WARNING: possible circular locking dependency detected",
    "same lock twice": "WARNING: possible recursive locking detected",
    "irq state": "WARNING: inconsistent lock state",
    "irq-unsafe lock inside": "WARNING: SOFTIRQ-safe -> SOFTIRQ-unsafe lock order detected",
    "unlock of another's": "WARNING: bad unlock balance detected!",
    "lock kept by a call": "WARNING: lock held when returning to user space!",
    "freed with a lock": "WARNING: held lock freed!",
    "lock without a class": "INFO: trying to register non-static key.",
    "lockdep's tables": "BUG: MAX_LOCKDEP_ENTRIES too low!",
    "lockdep off": "smc checker off: lockdep",
    "RCU": "WARNING: suspicious RCU usage",
    "RCU stall": "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "sleep": "BUG: sleeping function called from invalid context at mm/page_alloc.c:5143",
    "schedule": "BUG: scheduling while atomic: kworker/u2:1/31/0x00000002",
    "refcount": "refcount_t: underflow; use-after-free.",
    "list": "list_add corruption. next->prev should be prev (ffff8880), but was 0000.",
    "list on 6.12": "list_del corruption, ffff88800a->next is LIST_POISON1 (dead000000000100)",
    "hung task": "INFO: task kworker/u2:1:31 blocked for more than 60 seconds.",
    "soft lockup": "watchdog: BUG: soft lockup - CPU#0 stuck for 63s! [probe:311]",
    "workqueue": "BUG: workqueue lockup - pool cpus=0-1 flags=0x4 nice=0 stuck for 41s!",
    "WARN": "WARNING: CPU: 0 PID: 77 at /smc/kmod/session.c:51 session_set_state+0x4/0x9 [smcfs]",
    "BUG": "kernel BUG at mm/filemap.c:1550!",
    "oops": "BUG: kernel NULL pointer dereference, address: 0000000000000018",
    "bad address": "general protection fault, probably for non-canonical address 0xdffffc0000000003",
    "page": "BUG: Bad page state in process probe  pfn:0a3f1",
    "slab left": "BUG smcfs_xfer (Not tainted): Objects remaining in smcfs_xfer on shutdown()",
    "active work": "ODEBUG: free active (active state 0) object type: work_struct hint: x+0x0",
    "leak": "kmemleak: 2 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "kmemleak full": "kmemleak: Memory pool empty, consider increasing CONFIG_DEBUG_KMEMLEAK_MEM",
    "kmemleak off": "kmemleak: Kernel memory leak detector disabled",
    "memory": "probe: page allocation failure: order:2, mode:0x40cc0(GFP_KERNEL), nodemask=(null)",
    "OOM": "python3 invoked oom-killer: gfp_mask=0x140cca, order=0, oom_score_adj=0",
    "any stack": "Call Trace:",
}
HARMLESS = (
    "[   12.345678] smcfs: session 0x1 to target is lost: read QP: no progress for 2000 ms",
    "[    0.000000] Command line: console=ttyS0 oops=panic softlockup_panic=0",
    "[    2.345678] kmemleak: Kernel memory leak detector initialized (mem pool available: 39104)",
    "+ check grep -q WARNING: smcctl doctor",
    "FAIL: BUG: printed by a program, not by the kernel",
)


def hits(*lines: str, allow: dict[str, tuple[str, ...]] | None = None):
    with tempfile.NamedTemporaryFile("w") as log:
        log.write("\n".join(lines) + "\n")
        log.flush()
        return scan(Path(log.name), allow or {})


class KernelReports(unittest.TestCase):
    def test_each_kind_is_found(self) -> None:
        for kind, line in REPORTS.items():
            for stamp in ("[   12.345678] ", "[ 1012.345678][  T31] "):
                with self.subTest(kind, stamp=stamp):
                    self.assertEqual(len(hits(stamp + line)), 1)

    def test_what_kmemleak_lists_is_found(self) -> None:
        self.assertEqual(len(hits("unreferenced object 0xffff888007e3a000 (size 512):")), 1)

    def test_what_is_no_report_is_passed_over(self) -> None:
        self.assertEqual(hits(*HARMLESS), [])

    def test_the_case_is_named_with_what_follows(self) -> None:
        found = hits("[    9.000000] smc case: basic: first", "[    9.100000] fine",
                     "[   10.000000] smc case: basic: second",
                     "[   11.000000] " + REPORTS["KASAN"], "[   11.000001] Read of size 8")
        self.assertEqual([hit.case for hit in found], ["basic: second"])
        self.assertIn("Read of size 8", found[0].lines[1])

    def test_what_a_script_announced_is_its_own_alone(self) -> None:
        report = "[   11.000000] " + REPORTS["OOM"]
        allow = {"hungry": ("invoked oom-killer",)}
        self.assertEqual(hits("[ 9.0] smc case: hungry: eats", report, allow=allow), [])
        self.assertEqual(len(hits("[ 9.0] smc case: modest: eats", report, allow=allow)), 1)

    def test_a_dump_after_the_deadline_is_no_report(self) -> None:
        self.assertEqual(hits("[   99.000000] sysrq: Show Blocked State",
                              "[   99.000001] Call Trace:"), [])


if __name__ == "__main__":
    unittest.main()
