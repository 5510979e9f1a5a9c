# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""The kernel as QEMU boots it: unpacked, where the kernel can be entered so.

A distribution's kernel unpacks itself, which takes an emulated machine longer than the rest
of its start. With CONFIG_PVH QEMU can load the ELF file inside instead.

Owns: the unpacked image in the build directory, one per kernel.
Failure: VmError when the image is not what the boot protocol says; a kernel that cannot be
unpacked here is booted as it is.
"""

import lzma
import os
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

from errors import VmError

# Offsets in the setup header, from the x86 boot protocol.
SETUP_SECTORS = 0x1F1
MAGIC = 0x202
PAYLOAD = 0x248  # offset from the end of the setup sectors, and length
ELF = b"\x7fELF"


def payload_of(image: bytes, name: Path) -> bytes:
    if image[MAGIC:MAGIC + 4] != b"HdrS":
        raise VmError(f"{name} is no bzImage")
    offset, length = struct.unpack_from("<II", image, PAYLOAD)
    start = ((image[SETUP_SECTORS] or 4) + 1) * 512 + offset
    return image[start:start + length]


def unpack(payload: bytes) -> bytes | None:
    """The ELF file, or None when its packing is not known here."""
    # Decompressor objects stop at the end of the stream; the size follows it.
    if payload.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(payload)
    if payload.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(payload)
    if payload.startswith(b"\x28\xb5\x2f\xfd") and shutil.which("zstd"):
        # It complains of the size behind the stream, after having written all.
        return subprocess.run(["zstd", "-dcq"], input=payload, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False).stdout
    return None


def can_enter_elf(kernel_dir: Path) -> bool:
    configs = list((kernel_dir / "boot").glob("config*"))
    return any("CONFIG_PVH=y" in config.read_text().splitlines() for config in configs)


def bootable(kernel_dir: Path, out_dir: Path) -> Path:
    """What to hand to QEMU's -kernel."""
    image = kernel_dir / "boot/vmlinuz"
    if not can_enter_elf(kernel_dir):
        return image
    unpacked = out_dir / f"vmlinux-{kernel_dir.name}"
    if unpacked.exists():
        return unpacked
    elf = unpack(payload_of(image.read_bytes(), image))
    if elf is None or not elf.startswith(ELF):
        return image
    out_dir.mkdir(parents=True, exist_ok=True)
    draft = out_dir / f"{unpacked.name}.{os.getpid()}"
    draft.write_bytes(elf)
    draft.rename(unpacked)
    return unpacked
