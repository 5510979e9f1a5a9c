# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""One guest: its QEMU process, its monitor, and its line to the driver.

Owns: the process and both sockets of one node, from start to end.
Failure: the end of the process is reported once, through the future `ended`.
"""

import asyncio
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from errors import VmError
from network import Network
from process import die_with_parent
from tsc import host_khz

LINE_MAX = 1 << 20  # bytes of one request or monitor answer
CONNECT_S = 20      # QEMU opens its sockets before it starts the guest


@dataclass(frozen=True)
class Shape:
    """What the guests of a run are like."""

    nodes: int = 2
    cpus: int = 1
    mem: int = 1024  # MB
    target_mem: int = 0  # MB of the target; 0: as the others
    nics: int = 1
    numa: int = 1  # nodes of memory and processors; the cards are on the last
    mtu: int = 1500


@dataclass(frozen=True)
class Boot:
    """What all guests of one run boot from."""

    kernel: str
    kernel_dir: Path
    image: Path
    initramfs: Path
    repo: Path
    run_dir: Path
    socket_dir: Path  # short: the name of a socket has 107 bytes at most
    switch: Path  # the program that is the network


def node_names(count: int) -> list[str]:
    return (["target", "client"] + [f"node{n}" for n in range(3, 17)])[:count]


def kvm_is_usable() -> bool:
    """Also where /dev/kvm is there: without the processor's help, as inside some virtual machines,
    it emulates kernels instruction by instruction, and gives up on what it does not know."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return bool(flags and {"vmx", "svm"} & set(flags.group(1).split()))


class Guest:
    def __init__(self, name: str, index: int, shape: Shape, boot: Boot, network: Network) -> None:
        self.name = name
        self.index = index
        self.killed = False  # on request of a script
        self.log = boot.run_dir / f"{name}.log"
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._shape = shape
        self._boot = boot
        self._network = network
        self._sockets = {kind: boot.socket_dir / f"{name}.{kind}" for kind in ("qmp", "ctl")}
        self._process: asyncio.subprocess.Process | None = None
        self._qmp: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._qmp_answer: asyncio.Future[dict] | None = None
        self._qmp_lock = asyncio.Lock()
        self._ctl: asyncio.StreamWriter | None = None
        self._tasks: list[asyncio.Task] = []

    # --- start ---------------------------------------------------------------------------

    def _command_line(self) -> str:
        boot, shape = self._boot, self._shape
        own = {
            "node": self.name, "index": self.index, "nodes": shape.nodes, "nics": shape.nics,
            "mtu": shape.mtu, "kernel": boot.kernel, "repo": boot.repo,
            "kdir": boot.kernel_dir, "run": boot.run_dir,
        }
        words = [
            "console=ttyS0", "loglevel=5", "panic=-1", "oops=panic", "nokaslr",
            "mitigations=off", "tsc=reliable", "clocksource=tsc", "random.trust_cpu=on",
            # The host may be busy: its pauses are no stalls of the guest, nor a broken timer.
            "watchdog_thresh=30", "no_timer_check", "rcupdate.rcu_cpu_stall_timeout=60",
        ]
        if not kvm_is_usable() and (khz := host_khz()):
            words.append(f"tsc_early_khz={khz}")
        if boot.kernel == "debug":
            # Interrupt routing through ACPI takes 100 s under KASAN.
            words.append("pci=noacpi")
        return " ".join(words + [f"smc.{key}={value}" for key, value in own.items()])

    def _mem(self) -> int:
        shape = self._shape
        return shape.target_mem or shape.mem if self.name == "target" else shape.mem

    def _arguments(self, interactive: bool) -> list[str]:
        boot, shape = self._boot, self._shape
        args = ["qemu-system-x86_64", "-name", self.name, "-nodefaults", "-no-reboot",
                "-display", "none", "-smp", f"{shape.cpus},sockets={shape.numa}", "-m", str(self._mem()),
                "-rtc", "base=utc"]
        if kvm_is_usable():
            args += ["-accel", "kvm", "-cpu", "host"]
        else:
            # Without the string-copy features the kernel copies by plain moves, which are
            # faster to emulate; so are four levels of page tables.
            # Without cx16: guests with 6.12, whose slab allocator lives by cmpxchg16b, were seen
            # to double fault right after it, with impossible flags, in QEMU 7.2's emulation.
            args += ["-accel", "tcg,thread=multi,tb-size=512",
                     "-cpu", "max,-erms,-fsrm,-la57,-cx16"]
        args += self._numa_arguments()
        args += ["-kernel", str(boot.image),
                 "-initrd", str(boot.initramfs), "-append", self._command_line(),
                 "-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap",
                 "-device", "virtio-9p-pci,fsdev=root,mount_tag=hostroot",
                 "-device", "virtio-serial-pci",
                 "-chardev", f"socket,id=ctl,path={self._sockets['ctl']},server=on,wait=off",
                 "-device", "virtserialport,chardev=ctl,name=smc.driver",
                 "-chardev", f"socket,id=qmp,path={self._sockets['qmp']},server=on,wait=off",
                 "-mon", "chardev=qmp,mode=control"]
        if shape.numa > 1:
            # The last device but for the cards: on its bus all others would be put.
            args += ["-device", f"pxb,id=far,bus_nr=64,numa_node={shape.numa - 1}"]
        for nic, fd in enumerate(self._network.fds(self.port)):
            args += ["-netdev", f"stream,id=n{nic},addr.type=fd,addr.str={fd}",
                     "-device", f"virtio-net-pci,id=nic{nic},netdev=n{nic},romfile=,"
                                f"mac=52:54:00:77:{nic:02x}:{self.index:02x}"
                                + (",bus=far" if shape.numa > 1 else "")]
        if interactive:
            args += ["-chardev", f"stdio,id=console,mux=on,signal=off,logfile={self.log}",
                     "-mon", "chardev=console,mode=readline"]
        else:
            args += ["-chardev", f"file,id=console,path={self.log}"]
        return args + ["-serial", "chardev:console"]

    def _numa_arguments(self) -> list[str]:
        shape = self._shape
        if shape.numa == 1:
            return []
        args = []
        for node in range(shape.numa):
            first = node * shape.cpus // shape.numa
            last = (node + 1) * shape.cpus // shape.numa - 1
            args += ["-object", f"memory-backend-ram,id=ram{node},size={self._mem() // shape.numa}M",
                     "-numa", f"node,nodeid={node},memdev=ram{node},cpus={first}-{last}"]
        return args

    async def start(self, interactive: bool, on_line) -> None:
        """Boot. on_line(guest, line) gets each request of the guest."""
        with open(self._boot.run_dir / f"{self.name}.qemu.log", "wb") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *self._arguments(interactive),
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=None if interactive else errors, stderr=errors,
                # Ctrl-C is for this program, which then ends its guests in order.
                start_new_session=not interactive, preexec_fn=die_with_parent,
                pass_fds=self._network.fds(self.port))
        self._network.given(self.port)
        self._tasks.append(asyncio.create_task(self._watch_process()))
        reader, self._ctl = await self._connect("ctl")
        self._tasks.append(asyncio.create_task(self._read_requests(reader, on_line)))
        self._qmp = await self._connect("qmp")
        self._tasks.append(asyncio.create_task(self._read_qmp()))
        await self.qmp("qmp_capabilities")

    async def _connect(self, kind: str):
        path = self._sockets[kind]
        deadline = asyncio.get_running_loop().time() + CONNECT_S
        while True:
            try:
                return await asyncio.open_unix_connection(str(path), limit=LINE_MAX)
            except OSError as error:
                if self.ended.done():
                    raise VmError(f"{self.name}: {self.ended.result()}") from error
                if asyncio.get_running_loop().time() > deadline:
                    raise VmError(f"{self.name}: QEMU did not open {path}") from error
                await asyncio.sleep(0.02)

    @property
    def port(self) -> int:
        """Of the network's switch."""
        return self.index - 1

    # --- use -----------------------------------------------------------------------------

    async def _watch_process(self) -> None:
        assert self._process
        code = await self._process.wait()
        errors = (self._boot.run_dir / f"{self.name}.qemu.log").read_text(errors="replace")
        if not self.ended.done():
            self.ended.set_result(f"the guest ended, QEMU exit {code} {errors.strip()}".strip())

    async def _read_requests(self, reader: asyncio.StreamReader, on_line) -> None:
        while line := await reader.readline():
            on_line(self, line.decode(errors="replace").rstrip("\r\n"))

    async def _read_qmp(self) -> None:
        assert self._qmp
        while line := await self._qmp[0].readline():
            message = json.loads(line)
            if self._qmp_answer and not self._qmp_answer.done() and (
                    "return" in message or "error" in message):
                self._qmp_answer.set_result(message)

    def send(self, line: str) -> None:
        """A line to the guest: an answer, or an order that starts with `!`."""
        if self._ctl and not self.ended.done():
            self._ctl.write(line.encode() + b"\n")

    async def qmp(self, command: str, **arguments) -> object:
        """One monitor command, and what it returns; VmError with the monitor's words when refused."""
        async with self._qmp_lock:
            if self._qmp is None or self.ended.done():
                raise VmError(f"{self.name} is not running")
            self._qmp_answer = asyncio.get_running_loop().create_future()
            request = {"execute": command, "arguments": arguments}
            self._qmp[1].write(json.dumps(request).encode() + b"\n")
            await asyncio.wait({self._qmp_answer, self.ended},
                               return_when=asyncio.FIRST_COMPLETED)
            if not self._qmp_answer.done():
                raise VmError(f"{self.name} ended during {command}")
            answer = self._qmp_answer.result()
        if "error" in answer:
            raise VmError(f"{command}: {answer['error'].get('desc')}")
        return answer["return"]

    async def where(self) -> list[str]:
        """What its processors are at, or why that is not known: for one that answers nothing itself."""
        try:
            text = str(await self.qmp("human-monitor-command",
                                      **{"command-line": "info registers -a"}))
        except VmError as error:
            return [str(error)]
        return re.findall(r"^CPU#.*|^.*IP=.*|^CR0=.*", text, re.MULTILINE)

    async def set_running(self, running: bool) -> None:
        """Freeze its processor, or let it go on. Its network goes with it."""
        if running:
            await self._network.set_running(self.port, True)
        await self.qmp("cont" if running else "stop")
        if not running:
            await self._network.set_running(self.port, False)

    # --- end -----------------------------------------------------------------------------

    async def end(self) -> None:
        """End the process if it runs, and wait for that. Safe to call twice."""
        if self._process and self._process.returncode is None:
            self._process.kill()
        if self._process:
            await self.ended
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for path in self._sockets.values():
            path.unlink(missing_ok=True)
