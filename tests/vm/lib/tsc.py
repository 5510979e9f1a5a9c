# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""How fast this host's time-stamp counter runs, which is what an emulated processor shows its guest.

A guest measures that against an emulated timer while it boots, and is wrong by any factor if the
host does something else meanwhile: its clock then runs that much too fast, for ever.
"""

import ctypes
import functools
import mmap
import time

# rdtsc; shl $32, %rdx; or %rdx, %rax; ret
CODE = bytes.fromhex("0f31" "48c1e220" "4809d0" "c3")
SPAN_S = 0.05
TRIES = 5


@functools.cache
def host_khz() -> int | None:
    """kHz, to 0.1 % or better; None where programs may not run what they wrote."""
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    page.write(CODE)
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(
        ctypes.addressof(ctypes.c_char.from_buffer(page)))

    def pair() -> tuple[int, int]:
        # The tightest of some: in the others something came between the two readings.
        tries = []
        for _ in range(20):
            before, ticks, after = time.monotonic_ns(), read(), time.monotonic_ns()
            tries.append((after - before, ticks, (before + after) // 2))
        return min(tries)[1:]

    found = []
    for _ in range(TRIES):
        ticks, at = pair()
        time.sleep(SPAN_S)
        more_ticks, later = pair()
        found.append((more_ticks - ticks) * 1_000_000 // (later - at))
    return sorted(found)[TRIES // 2]
