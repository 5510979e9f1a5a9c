#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""The client's half of the round trip: drive the accelerator of another node with loads and stores.

  drive_accelerator.py /smc/NODE/REGION [JOBS]

Layout of the region: see tests/vm/src/accel_standin.cpp, which is the other half. There is no
library in here: the region is a file, and this is how a file is mapped.
Failure: a wrong result, or none within a minute, ends it with exit 1.
"""

import mmap
import os
import struct
import sys
import time

import numpy

RESULT_PAGE = 4096
INPUT = 64 << 10
COUNT = 1 << 19  # float32 numbers: 2 MiB in, 2 MiB out
WAIT_S = 60
FLAG = struct.Struct("=Q")


def wait_until_done(fd: int, job: int) -> float:
    """Poll the flag of the other side: an acquire, then a read, until it has this job's number."""
    start = time.monotonic()
    while time.monotonic() - start < WAIT_S:
        os.posix_fadvise(fd, RESULT_PAGE, 4096, os.POSIX_FADV_DONTNEED)
        done, = FLAG.unpack(os.pread(fd, 8, RESULT_PAGE))
        if done == job:
            return time.monotonic() - start
    sys.exit(f"the accelerator did not finish job {job} within {WAIT_S} s")


def run_job(fd: int, region: mmap.mmap, job: int) -> None:
    factor = 1.5 * job
    output = (INPUT + 4 * COUNT + 4095) // 4096 * 4096

    # Plain stores: an array that happens to be another node's memory.
    numbers = numpy.frombuffer(region, numpy.float32, COUNT, INPUT)
    numbers[:] = numpy.arange(COUNT, dtype=numpy.float32) % 1000
    struct.pack_into("=Qf", region, 8, COUNT, factor)
    start = time.monotonic()
    region.flush()  # msync: when it returns, all of it is in the accelerator's memory
    flushed = time.monotonic() - start

    # Only now the flag, so that whoever sees it sees the input too.
    os.pwrite(fd, FLAG.pack(job), 0)
    region.flush()
    waited = wait_until_done(fd, job)

    os.posix_fadvise(fd, output, 4 * COUNT, os.POSIX_FADV_DONTNEED)
    results = numpy.frombuffer(region, numpy.float32, COUNT, output)
    wanted = numpy.float32(factor) * numbers + numpy.arange(COUNT, dtype=numpy.float32)
    if not numpy.array_equal(results, wanted):
        wrong = int((results != wanted).argmax())
        sys.exit(f"job {job}: result {wrong} is {results[wrong]}, should be {wanted[wrong]}")
    total, = struct.unpack("=d", os.pread(fd, 8, RESULT_PAGE + 8))
    if abs(total - float(wanted.sum(dtype=numpy.float64))) > 1e-6 * abs(total):
        sys.exit(f"job {job}: the sum is {total}")
    print(f"job {job}: {COUNT} numbers sent in {flushed:.2f} s, result after {waited:.2f} s, "
          f"all right, sum {total:.6g}", flush=True)


def main() -> None:
    path = sys.argv[1]
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    fd = os.open(path, os.O_RDWR)
    region = mmap.mmap(fd, 0)
    first = FLAG.unpack(os.pread(fd, 8, 0))[0] + 1
    for job in range(first, first + jobs):
        run_job(fd, region, job)


if __name__ == "__main__":
    main()
