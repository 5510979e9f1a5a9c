#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""Python programs as users write them, on a region: each function is one, and knows nothing of SMC.

  python_programs.py PROGRAM REGION

Prints what is in the region afterwards as a SHA-256, for comparison with the target's memory.
Failure: an assertion ends the program with its line.
"""

import ctypes
import hashlib
import mmap
import os
import socket
import sys
import threading


def numpy_memmap(path: str) -> None:
    """Modes r, r+ and c of numpy.memmap."""
    import numpy

    count = os.stat(path).st_size // 8
    values = numpy.memmap(path, dtype=numpy.float64, mode="r+", shape=(count,))
    values[:] = numpy.arange(count, dtype=numpy.float64) * 0.5
    values[1000:2000] += 7.25
    values.flush()

    again = numpy.memmap(path, dtype=numpy.float64, mode="r")
    assert again.shape == (count,), again.shape
    assert again[999] == 499.5 and again[1000] == 507.25, again[998:1002]
    assert float(again.sum()) == float(values.sum())
    try:
        again[0] = 1
    except ValueError:
        pass
    else:
        raise AssertionError("mode r let itself be written")

    private = numpy.memmap(path, dtype=numpy.float64, mode="c")
    private[:] = -1
    assert float(again[3]) == 1.5, "mode c changed the region"
    two_rows = numpy.memmap(path, dtype=numpy.uint8, mode="r+", offset=4096, shape=(2, 4096))
    two_rows[1] = 170
    two_rows.flush()


def python_mmap(path: str) -> None:
    """The mmap module with the file's own length, and with a part of it."""
    with open(path, "r+b") as file:
        whole = mmap.mmap(file.fileno(), 0)
        size = os.stat(path).st_size
        assert len(whole) == size, (len(whole), size)
        whole[0:16] = b"a word at offset"
        whole[size - 4:size] = b"tail"
        assert whole.find(b"offset") == 10
        whole.flush()
        part = mmap.mmap(file.fileno(), 8192, offset=mmap.ALLOCATIONGRANULARITY)
        part[0] = 255
        part.flush()
        assert os.pread(file.fileno(), 1, mmap.ALLOCATIONGRANULARITY) == b"\xff"
        assert whole[mmap.ALLOCATIONGRANULARITY] == 255
        part.close()
        whole.close()


def sendfile(path: str) -> None:
    """os.sendfile of the whole region into a socket."""
    size = os.stat(path).st_size
    ours, theirs = socket.socketpair()
    digest = hashlib.sha256()

    def receive() -> None:
        left = size
        while left > 0:
            data = theirs.recv(1 << 16)
            digest.update(data)
            left -= len(data)

    reader = threading.Thread(target=receive)
    reader.start()
    with open(path, "rb") as file:
        sent = 0
        while sent < size:
            sent += os.sendfile(ours.fileno(), file.fileno(), sent, size - sent)
    reader.join()
    assert digest.hexdigest() == sha256(path), "sendfile sent other bytes than read"


class IoVec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def process_vm(path: str) -> None:
    """Another process reads and writes this one's mapping: no page of it was ever touched here."""
    with open(path, "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
        pid = os.getpid()
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        child = os.fork()
        if child == 0:
            os._exit(0 if transfer_from_child(pid, address, path) else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert mapped[8190:8194] == b"XXXX", mapped[8190:8194]
        os.fsync(file.fileno())


def transfer_from_child(pid: int, address: int, path: str) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(20000)
    local = IoVec(ctypes.addressof(buffer), 20000)
    remote = IoVec(address + 4000, 20000)
    got = libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    with open(path, "rb") as file:
        wanted = os.pread(file.fileno(), 20000, 4000)
    if got != 20000 or buffer.raw != wanted:
        return False
    buffer = ctypes.create_string_buffer(b"XXXX", 4)
    local = IoVec(ctypes.addressof(buffer), 4)
    remote = IoVec(address + 8190, 4)
    return libc.process_vm_writev(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) == 4


def sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(1 << 18):
            digest.update(data)
    return digest.hexdigest()


PROGRAMS = {f.__name__: f for f in (numpy_memmap, python_mmap, sendfile, process_vm)}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](sys.argv[2])
    print(sha256(sys.argv[2]))
