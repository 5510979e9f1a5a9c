# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""The benchmark's guest: one emulated processor whose clock counts its instructions.

Owns: the QEMU process, from start to end; its console log.
Failure: VmError when the guest ends before its last line, or is silent for too long.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from errors import VmError

SILENCE_S = 900  # between two lines of results, on a busy host
PR_SET_PDEATHSIG = 1
MEMORY_MB = 2048


@dataclass(frozen=True)
class Boot:
    image: Path  # kernel
    archive: Path
    log: Path  # of the console
    mtu: int
    parts: tuple[str, ...]
    seed: int = 1
    words: dict[str, str] = field(default_factory=dict)  # more of bench.*, for guest/init.sh
    plugin: str = ""


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def arguments(boot: Boot) -> list[str]:
    own = {"mtu": str(boot.mtu), "parts": ",".join(boot.parts), **boot.words}
    words = ["console=ttyS0", "loglevel=6", "panic=-1", "oops=panic", "nokaslr",
             "mitigations=off", "tsc=reliable", "clocksource=tsc", "random.trust_cpu=on",
             *(f"bench.{key}={value}" for key, value in own.items())]
    args = ["qemu-system-x86_64", "-nodefaults", "-no-reboot", "-display", "none",
            # One instruction is one nanosecond, and idle time takes none: what the host does
            # meanwhile changes nothing. The clock of the day and what is random are fixed, too.
            "-accel", "tcg,thread=single,tb-size=512", "-icount", "shift=0,sleep=off",
            "-smp", "1", "-cpu", "max,-erms,-fsrm", "-m", str(MEMORY_MB),
            "-rtc", "clock=vm,base=2026-01-01", "-seed", str(boot.seed),
            "-kernel", str(boot.image), "-initrd", str(boot.archive),
            "-append", " ".join(words),
            # A card on a network that has nobody else on it.
            "-netdev", "hubport,id=n0,hubid=0",
            "-device", "virtio-net-pci,netdev=n0,romfile=",
            "-device", "virtio-serial-pci",
            "-chardev", "stdio,id=results,signal=off",
            "-device", "virtserialport,chardev=results,name=smc.bench",
            "-chardev", f"file,id=console,path={boot.log}", "-serial", "chardev:console"]
    if boot.plugin:
        args += ["-plugin", boot.plugin]
    return args


def run(boot: Boot, on_line: Callable[[dict], None],
        on_text: Callable[[str], None] = lambda _text: None) -> None:
    """Boot, hand each result to on_line and what is none to on_text, until the guest is done."""
    boot.log.parent.mkdir(parents=True, exist_ok=True)
    errors = boot.log.with_suffix(".qemu")
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            # Its standard input stays open, else the port is closed to the guest.
            arguments(boot), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
            preexec_fn=die_with_parent)
    try:
        _read(process, boot, on_line, on_text)
    finally:
        if process.poll() is None:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _lines(process: subprocess.Popen, log: Path) -> Iterator[str]:
    """What the guest says, line by line, for as long as it goes on."""
    assert process.stdout
    rest = b""
    while True:
        ready, _, _ = select.select([process.stdout], [], [], SILENCE_S)
        if not ready:
            process.kill()
            raise VmError(f"the guest said nothing for {SILENCE_S} s; its console: {log}")
        data = os.read(process.stdout.fileno(), 1 << 16)
        if not data:
            raise VmError(f"the guest ended early, QEMU exit {process.wait()}; its console: {log}")
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")


def _read(process: subprocess.Popen, boot: Boot, on_line: Callable[[dict], None],
          on_text: Callable[[str], None]) -> None:
    for line in _lines(process, boot.log):
        if not line.startswith("{"):
            on_text(line)
            continue
        result = json.loads(line)
        if result.get("end"):
            return
        on_line(result)
