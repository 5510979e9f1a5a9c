# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""The network of a run: one switch process (switch.cpp) for each card that guests have.

Owns: the switch processes and, until the guests have them, the sockets to their cards.
Failure: VmError when the switch cannot be built. A switch that ends leaves guests without a network,
which their scripts notice.
"""

import asyncio
import hashlib
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from errors import VmError
from process import die_with_parent

SOURCE = Path(__file__).resolve().parent / "switch.cpp"
COMPILE = ["c++", "-std=c++20", "-O2"]


def build_switch(directory: Path) -> Path:
    """The program, compiled once for each state of its source."""
    if shutil.which(COMPILE[0]) is None:
        raise VmError(f"{COMPILE[0]} is missing; run scripts/setup")
    key = hashlib.sha256(SOURCE.read_bytes() + " ".join(COMPILE).encode()).hexdigest()[:16]
    program = directory / f"switch-{key}"
    if not program.exists():
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            fresh = Path(scratch) / "switch"
            done = subprocess.run([*COMPILE, "-o", fresh, SOURCE], capture_output=True, text=True,
                                  check=False)
            if done.returncode != 0:
                raise VmError(f"{SOURCE} does not compile:\n{done.stderr}")
            fresh.rename(program)
    return program


class Network:
    def __init__(self, program: Path, nodes: int, nics: int) -> None:
        self._program = program
        self._pairs = [[socket.socketpair() for _ in range(nodes)] for _ in range(nics)]
        self._switches: list[asyncio.subprocess.Process] = []

    async def start(self) -> None:
        for pairs in self._pairs:
            fds = [switch_end.fileno() for switch_end, _ in pairs]
            self._switches.append(await asyncio.create_subprocess_exec(
                self._program, *map(str, fds), pass_fds=fds, stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE, start_new_session=True,
                preexec_fn=die_with_parent))
            for switch_end, _ in pairs:
                switch_end.close()

    def fds(self, port: int) -> list[int]:
        """The sockets of a guest's cards, which its process has to be given."""
        return [pairs[port][1].fileno() for pairs in self._pairs]

    def given(self, port: int) -> None:
        """The guest has its sockets: when it ends, the switch is to notice."""
        for pairs in self._pairs:
            pairs[port][1].close()

    async def set_running(self, port: int, running: bool) -> None:
        """A guest that does not run takes no frames, and must not hold up those that send to it."""
        for switch in self._switches:
            assert switch.stdin and switch.stdout
            switch.stdin.write(f"{'pass' if running else 'drop'} {port}\n".encode())
            if await switch.stdout.readline() != b"ok\n":
                raise VmError("the network's switch has ended")

    async def end(self) -> None:
        for pairs in self._pairs:
            for pair in pairs:
                for end in pair:
                    end.close()
        for switch in self._switches:
            if switch.returncode is None:
                switch.kill()
            await switch.wait()
