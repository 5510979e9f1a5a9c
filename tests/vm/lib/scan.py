# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""Search a guest's console log for reports of the kernel against itself.

A hit fails the test that was running, whatever its cases said.
"""

import re
from dataclasses import dataclass
from pathlib import Path

# Lines that the kernel printed, told from what programs print by the time stamp.
KERNEL_LINE = re.compile(r"\[ *\d+\.\d{6}\](?:\[ *[TC]\d+\])? (.*)")
CASE_LINE = re.compile(r"smc case: (.*)")

REPORTS = re.compile("|".join((
    r"\bBUG\b", r"\bWARNING\b", r"\bOops\b", r"Kernel panic", r"general protection",
    r"KASAN", r"UBSAN", r"possible circular", r"possible recursive", r"possible deadlock",
    r"inconsistent lock", r"inconsistent \{", r"suspicious RCU", r"invalid wait context",
    r"lock held when returning", r"held lock freed", r"blocked for more than",
    r"soft lockup", r"hard LOCKUP", r"rcu.*stall", r"rcu.*detected stalls",
    r"Bad page", r"bad page state", r"refcount_t:", r"new suspected memory leaks",
    r"scheduling while atomic", r"sleeping function called", r"Call Trace",
    r"list_(?:add|del) corruption", r"page allocation failure", r"invoked oom-killer",
    r"ODEBUG:", r"DEBUG_LOCKS_WARN_ON", r"stack guard page", r"unable to handle",
    r"Unable to handle", r"non-static key",
    # A checker that gave up sees nothing more.
    r"kmemleak: (?:Cannot|Memory pool empty|Kernel memory leak detector disabled)",
    r"smc checker off:",
)))
# The network card, which is QEMU's, did not take what its driver gave it for seconds.
STANDS_STILL = re.compile(r"NETDEV WATCHDOG: .*transmit queue \d+ timed out")
# Printed by the runner when the debug kernel's leak scan found something.
LEAK = re.compile(r"^unreferenced object 0x")

# The driver's last order to a guest past its deadline: what follows is no report.
DUMP = "sysrq: Show"

# What stock kernels say in these guests with no module of ours loaded. Each entry says why.
ALLOWED = (
    # The switch that turns the reports off, echoed from the command line or announced.
    re.compile(r"[Cc]ommand line:|Unknown kernel command line parameters"),
)
# A script that provokes a report says so in its header: allow=WORDS, "_" for a space.
CONTEXT_LINES = 25
HITS_MAX = 20


@dataclass
class Hit:
    case: str  # the case that was running, empty before the first
    lines: list[str]


def scan(log: Path, allow: dict[str, tuple[str, ...]]) -> list[Hit]:
    """All reports in the log, each with the lines that follow it, less what the script
    that was running announced to provoke."""
    hits: list[Hit] = []
    case = ""
    lines = log.read_text(errors="replace").splitlines()
    skip_to = 0
    for number, line in enumerate(lines):
        if found := CASE_LINE.search(line):
            case = found.group(1)
            continue
        if DUMP in line:
            break
        kernel = KERNEL_LINE.search(line)
        text = kernel.group(1) if kernel else ""
        if not (REPORTS.search(text) or LEAK.search(line)):
            continue
        if any(pattern.search(line) for pattern in ALLOWED):
            continue
        if any(words in line for words in allow.get(case.partition(": ")[0], ())):
            continue
        if number < skip_to:
            continue
        skip_to = number + CONTEXT_LINES
        hits.append(Hit(case, lines[number:skip_to]))
        if len(hits) == HITS_MAX:
            break
    return hits


def stands_still(log: Path) -> bool:
    """Has the guest's network card ceased to send?"""
    for line in log.read_text(errors="replace").splitlines():
        kernel = KERNEL_LINE.search(line)
        if kernel and STANDS_STILL.search(kernel.group(1)):
            return True
    return False
