#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""scripts/vm run with guests that do not come up: their processors are stopped as soon as they run.

Claim: they are booted once more, which the output tells with what their processors were doing; the scripts
then run as if nothing had been; guests that do not come up twice are a failure of each script. Without a
kernel in the cache the test counts as skipped.
"""

import importlib.machinery
import importlib.util
import io
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNEL = "6.1"
SKIP = 77
SHORT_S = 0.5
SCRIPT = ROOT / "build/vm/boots-script.sh"
NAME = "boots-test"

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("vm", str(ROOT / "scripts/vm"))
spec = importlib.util.spec_from_loader("vm", loader)
assert spec
vm = importlib.util.module_from_spec(spec)
loader.exec_module(vm)
import session  # noqa: E402  # found by the path that scripts/vm sets


def run(hung_boots: int) -> tuple[int, str]:
    """Its exit status and output, if so many boots hang."""
    boots = 0
    real_start, real_deadline = session.Guest.start, vm.Session._set_deadline

    async def start(self, *arguments) -> None:
        nonlocal boots
        boots += 1
        await real_start(self, *arguments)
        if boots <= hung_boots:
            await self.set_running(False)

    def set_deadline(self, seconds: float, what: str) -> None:
        short = what == "the guests did not boot" and boots < hung_boots
        real_deadline(self, SHORT_S if short else seconds, what)

    session.Guest.start = start
    vm.Session._set_deadline = set_deadline
    sys.argv = ["vm", "run", "--kernel", KERNEL, "--name", NAME, "--env", "SOAK=0", "--env", "SEED=1",
                str(SCRIPT)]
    out = io.StringIO()
    try:
        with redirect_stdout(out):
            code = vm.main()
    finally:
        session.Guest.start = real_start
        vm.Session._set_deadline = real_deadline
    return code, out.getvalue()


def expect(what: str, good: bool, seen: str) -> None:
    if not good:
        sys.exit(f"FAILED: {what}; seen:\n{seen[-6000:]}")
    print(f"ok: {what}", flush=True)


def main() -> int:
    if subprocess.run([ROOT / "scripts/kernels", "--path", KERNEL], capture_output=True,
                      check=False).returncode != 0:
        print(f"skipped: no kernel {KERNEL}; run scripts/kernels {KERNEL}")
        return SKIP
    SCRIPT.parent.mkdir(parents=True, exist_ok=True)
    SCRIPT.write_text("#!/bin/bash\n# vm: nodes=1 timeout=60\n. \"$SMC_ROOT/tests/vm/lib.sh\"\n"
                      "case_ nothing true\npass\n")
    code, out = run(1)
    expect("a boot that fails is tried once more", code == 0 and "boot once more" in out, out)
    expect("the output tells where its processor was", "IP=" in out and "HLT=" in out, out)
    code, out = run(2)
    expect("two in a row are a failure", code == 1 and "did not boot within" in out, out)
    expect("and so is each script", "boots-script: ran # no guest to run in" in out, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
