#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""scripts/vm run with guests that do not come up: their processors are stopped as soon as they run; and
with guests of which one says that its network card stands still.

Claim: they are booted once more, which the output tells with what their processors were doing; the scripts
then run as if nothing had been; guests that do not come up twice are a failure of each script. Scripts that
failed beside such a card are run once more; what fails by itself, or twice, has failed. Without a
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
BOOT = "the guests did not boot"
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
    current = None
    real_start, real_deadline = session.Guest.start, vm.Session._set_deadline

    async def start(self, *arguments) -> None:
        nonlocal boots
        boots += 1
        await real_start(self, *arguments)
        if boots <= hung_boots:
            await self.set_running(False)
            real_deadline(current, SHORT_S, BOOT)

    def set_deadline(self, seconds: float, what: str) -> None:
        nonlocal current
        current = self
        real_deadline(self, seconds, what)

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


def write_script(text: str) -> None:
    SCRIPT.write_text("#!/bin/bash\n# vm: nodes=1 timeout=60\n. \"$SMC_ROOT/tests/vm/lib.sh\"\n"
                      f"{text}\npass\n")


def main() -> int:
    if subprocess.run([ROOT / "scripts/kernels", "--path", KERNEL], capture_output=True,
                      check=False).returncode != 0:
        print(f"skipped: no kernel {KERNEL}; run scripts/kernels {KERNEL}")
        return SKIP
    SCRIPT.parent.mkdir(parents=True, exist_ok=True)
    write_script("case_ nothing true")
    code, out = run(1)
    expect("a boot that fails is tried once more", code == 0 and "boot once more" in out, out)
    expect("the output tells where its processor was", "IP=" in out and "HLT=" in out, out)
    code, out = run(2)
    expect("two in a row are a failure", code == 1 and "did not boot within" in out, out)
    expect("and so is each script", "boots-script: ran # no guest to run in" in out, out)
    # What the kernel prints, as 6.1 and 6.12 do.
    still = ("echo 'virtio_net virtio2 eth0: NETDEV WATCHDOG: CPU: 0: transmit queue 0 timed out 5564 ms' "
             ">/dev/kmsg")
    second = '[ "${RUN_DIR%.2}" != "$RUN_DIR" ]'
    write_script(f"trial() {{ {still}; {second}; }}\ncase_ card trial")
    code, out = run(0)
    expect("what a card has spoilt is run once more", code == 0 and "stood still" in out, out)
    write_script(f"trial() {{ {still}; false; }}\ncase_ card trial")
    code, out = run(0)
    expect("what fails again has failed", code == 1 and out.count("stood still") == 1, out)
    write_script(f"trial() {{ {second}; }}\ncase_ card trial")
    code, out = run(0)
    expect("what fails by itself is not run again", code == 1 and "stood still" not in out, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
