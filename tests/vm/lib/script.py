# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""A test script and what its header asks for.

The header is a comment line `# vm: key=value ...`; keys and defaults are in FIELDS.
Failure: VmError names the file, the line and the accepted keys.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from errors import VmError
from guest import Shape

KERNELS = ("6.1", "6.12", "debug")
SHAPE_KEYS = ("nodes", "cpus", "mem", "target_mem", "nics", "mtu", "numa")


@dataclass(frozen=True)
class Script:
    path: Path
    shape: Shape = Shape()
    kernels: tuple[str, ...] = ("6.1", "6.12")
    timeout: int = 300  # seconds, from its first line to its last on all nodes
    allow: tuple[str, ...] = ()  # kernel reports that it provokes; "_" stands for a space

    @property
    def name(self) -> str:
        return self.path.stem


def parse(path: Path) -> Script:
    script = Script(path.resolve())
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise VmError(f"{path}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        if line.startswith("# vm:"):
            for word in line.removeprefix("# vm:").split():
                script = with_word(script, word, f"{path}:{number}")
    return script


def with_word(script: Script, word: str, where: str) -> Script:
    key, equals, value = word.partition("=")
    try:
        if not equals:
            raise ValueError("no value")
        if key in SHAPE_KEYS:
            number = int(value)
            if number < 1 or (key in ("nodes", "cpus") and number > 16):
                raise ValueError("out of range")
            return replace(script, shape=replace(script.shape, **{key: number}))
        if key == "timeout":
            return replace(script, timeout=int(value))
        if key == "kernels":
            kernels = tuple(value.split(","))
            if unknown := set(kernels) - set(KERNELS):
                raise ValueError(f"unknown kernel {unknown.pop()}")
            return replace(script, kernels=kernels)
        if key == "allow":
            return replace(script, allow=script.allow + (value.replace("_", " "),))
        raise ValueError("unknown key")
    except ValueError as error:
        keys = ", ".join(SHAPE_KEYS + ("kernels", "timeout", "allow"))
        raise VmError(f"{where}: {word}: {error}; keys are {keys}") from error
