# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""The initramfs of a guest: a static busybox, its init, and the modules to reach the root.

Owns: the archive in the build directory, one per kernel and content.
Failure: VmError names the missing file or tool and the remedy.
"""

import hashlib
import lzma
import os
import subprocess
from pathlib import Path

from errors import VmError

LIB = Path(__file__).resolve().parent
BUSYBOX = Path("/bin/busybox")
# The way to the host's file tree first, then soft-RoCE, whose checksum is a module of its own.
MODULES = (
    "virtio_pci", "virtio_console", "virtio_net", "9pnet_virtio", "9p", "overlay",
    "crc32_generic", "crc32_pclmul", "ib_uverbs", "rdma_cm", "rdma_ucm", "rdma_rxe",
)


def release_of(kernel_dir: Path) -> str:
    """The one kernel release below kernel_dir."""
    releases = os.listdir(kernel_dir / "lib/modules")
    if len(releases) != 1:
        raise VmError(f"{kernel_dir}/lib/modules: want one release, found {releases}")
    return releases[0]


def module_files(kernel_dir: Path, names: tuple[str, ...] = MODULES) -> list[Path]:
    """What to insert, dependencies first; what the kernel has built in is left out."""
    files: list[Path] = []
    for name in names:
        done = subprocess.run(
            ["modprobe", "-d", kernel_dir, "-S", release_of(kernel_dir), "--show-depends", name],
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            # The debug kernel has no module tree; it lists what is built in.
            if built_in(kernel_dir, name):
                continue
            raise VmError(f"module {name}: {done.stderr.strip()}")
        for line in done.stdout.splitlines():
            kind, _, path = line.partition(" ")
            file = Path(path.strip())
            if kind == "insmod" and file not in files:
                files.append(file)
    return files


def built_in(kernel_dir: Path, name: str) -> bool:
    config = kernel_dir / "boot/config"
    return config.exists() and "CONFIG_RDMA_RXE=y" in config.read_text().splitlines()


def module_bytes(file: Path) -> bytes:
    data = file.read_bytes()
    return lzma.decompress(data) if file.suffix == ".xz" else data


class Cpio:
    """A writer of the newc format, so that no root is needed to own the files in it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._inode = 0

    def add(self, name: str, mode: int, data: bytes = b"") -> None:
        self._inode += 1
        encoded = name.encode() + b"\0"
        fields = (self._inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        header = b"070701" + b"".join(b"%08x" % field for field in fields)
        for part in (header + encoded, data):
            self._parts.append(part + b"\0" * (-len(part) % 4))

    def directory(self, name: str) -> None:
        self.add(name, 0o040755)

    def file(self, name: str, data: bytes) -> None:
        self.add(name, 0o100755, data)

    def link(self, name: str, target: str) -> None:
        self.add(name, 0o120777, target.encode())

    def finish(self) -> bytes:
        self.add("TRAILER!!!", 0)
        return b"".join(self._parts)


def build(kernel_dir: Path, out_dir: Path) -> Path:
    """Return the archive for the kernel, from out_dir when nothing it is made of changed."""
    init = (LIB / "initramfs-init.sh").read_bytes()
    if not BUSYBOX.exists():
        raise VmError(f"{BUSYBOX} is missing; run scripts/setup")
    key = hashlib.sha256()
    for part in (str(kernel_dir).encode(), init, Path(__file__).read_bytes(),
                 str(BUSYBOX.stat().st_mtime_ns).encode()):
        key.update(part)
    archive = out_dir / f"initramfs-{key.hexdigest()[:12]}.cpio"
    if archive.exists():
        return archive
    cpio = Cpio()
    for name in ("bin", "dev", "proc", "sys", "mods", "host", "rw", "root"):
        cpio.directory(name)
    cpio.file("bin/busybox", BUSYBOX.read_bytes())
    cpio.link("bin/sh", "busybox")
    cpio.file("init", init)
    for order, file in enumerate(module_files(kernel_dir)):
        name = file.name.removesuffix(".xz")
        cpio.file(f"mods/{order:02d}-{name}", module_bytes(file))
    out_dir.mkdir(parents=True, exist_ok=True)
    # Runs start side by side: each writes its own file and puts it in place whole.
    draft = archive.with_suffix(f".{os.getpid()}")
    draft.write_bytes(cpio.finish())
    draft.rename(archive)
    return archive
