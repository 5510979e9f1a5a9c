# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""The benchmark's guest as one archive: nothing is read from the host while it runs, since that
would move the guest's clock.

Owns: the archive in the build directory.
Failure: VmError names the missing file or program and the remedy.
"""

import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from errors import VmError
from initramfs import BUSYBOX, MODULES, Cpio, module_bytes, module_files

GUEST = Path(__file__).resolve().parent.parent / "guest"
PROGRAMS = ("bash", "nice", "rdma", "ibv_devinfo", "ib_write_bw", "ib_read_bw", "ib_read_lat")
PEERS = {
    "nvme": ("nvme-core", "configfs", "brd", "nvmet", "nvmet-rdma", "nvme-rdma"),
    "nfs": ("rpcrdma", "nfsd", "nfs", "nfsv4"),
}
LIBRARY_DIR = "/lib/x86_64-linux-gnu"
BUILT = ("daemon/smcfsd", "tools/smcctl/smcctl", "tools/smcbench/smcbench", "bin/smcfs-standin",
         "bin/attach-cost")
# What programs load by name, not by linking.
LIBRARIES = ("libgcc_s.so.1",)
DRIVERS_DIR = "/usr/lib/x86_64-linux-gnu/libibverbs"
FILES = ("/etc/libibverbs.d/rxe.driver", "/etc/protocols", "/etc/services")


class Image:
    def __init__(self) -> None:
        self._cpio = Cpio()
        self._have: set[str] = set()
        self._base: list[Path] = []
        for name in ("proc", "sys", "dev", "run", "tmp", "bench"):
            self._directory(name)

    def _directory(self, name: str) -> None:
        parts = Path(name).parts
        for depth in range(1, len(parts) + 1):
            path = "/".join(parts[:depth])
            if path not in self._have:
                self._have.add(path)
                self._cpio.directory(path)

    def file(self, name: str, source: Path) -> None:
        name = name.lstrip("/")
        if name in self._have:
            return
        self._directory(str(Path(name).parent))
        self._have.add(name)
        self._cpio.file(name, source.read_bytes())

    def link(self, name: str, target: str) -> None:
        if name not in self._have:
            self._directory(str(Path(name).parent))
            self._have.add(name)
            self._cpio.link(name, target)

    def built(self, name: str, source: Path) -> None:
        """What the project builds, without its debug information: the archive is memory."""
        if not source.exists():
            raise VmError(f"{source} is missing; run scripts/bench without --no-build")
        with tempfile.TemporaryDirectory() as scratch:
            stripped = Path(scratch, source.name)
            subprocess.run(["strip", "--strip-debug", "-o", stripped, source], check=True)
            self.file(name, stripped)
        self.libraries_of(source)

    def program(self, source: Path, name: str = "") -> None:
        self.file(f"bin/{name or source.name}", source.resolve())
        self.libraries_of(source)

    def libraries_of(self, source: Path) -> None:
        done = subprocess.run(["ldd", source], capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            words = line.split()
            path = next((word for word in words if word.startswith("/")), None)
            if path is None and "not" in words:
                raise VmError(f"{source}: {line.strip()}")
            if path:
                # Where the loader looks, wherever it lies here.
                name = path if path.startswith("/lib64/") else f"{LIBRARY_DIR}/{Path(path).name}"
                self.file(name, Path(path).resolve())

    def host_program(self, name: str) -> None:
        path = shutil.which(name, path="/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin")
        if path is None:
            raise VmError(f"{name} is missing; run scripts/setup")
        self.program(Path(path), name)

    def modules(self, kernel_dir: Path, name: str, modules: tuple[str, ...]) -> None:
        """What load_modules NAME of guest/init.sh inserts; the first call's is there already."""
        self._directory(f"mods/{name}")
        files = module_files(kernel_dir, modules)
        self._base = self._base or files
        for order, file in enumerate(files):
            if file in self._base and files is not self._base:
                continue
            self._cpio.file(f"mods/{name}/{order:02d}-{file.name.removesuffix('.xz')}",
                            module_bytes(file))

    def finish(self, archive: Path) -> Path:
        archive.parent.mkdir(parents=True, exist_ok=True)
        archive.write_bytes(self._cpio.finish())
        return archive


def build(kernel: str, kernel_dir: Path, root: Path, archive: Path, peers: bool) -> Path:
    """The archive for this kernel, with the product as it is built now."""
    image = Image()
    image.file("bin/busybox", BUSYBOX)
    image.file("init", GUEST / "init.sh")
    image.link("bin/sh", "busybox")
    for name in PROGRAMS:
        image.host_program(name)
    release = root / "build/release"
    for program in BUILT:
        image.built(f"bin/{Path(program).name}", release / program)
    image.built("bench/smcfs.ko", root / f"build/kmod-{kernel}/smcfs.ko")
    for part in sorted(GUEST.glob("*.sh")):
        if part.name != "init.sh":
            image.file(f"bench/{part.name}", part)
    for name in LIBRARIES:
        image.file(f"{LIBRARY_DIR}/{name}", Path(LIBRARY_DIR, name).resolve())
    for driver in Path(DRIVERS_DIR).glob("librxe*"):
        image.file(str(driver), driver.resolve())
        image.libraries_of(driver)
    for name in FILES:
        if Path(name).exists():
            image.file(name, Path(name))
    image.modules(kernel_dir, "base", MODULES)
    for name, modules in PEERS.items() if peers else ():
        image.modules(kernel_dir, name, modules)
    if peers:
        image.host_program("mount")
    return image.finish(archive)
