#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""scripts/vm shell, with this program at the terminal.

Claim: it ends in a shell on the client, with /smc mounted; `exit` ends it and the guests and leaves the
terminal as it was; wrong use is refused with the reason. Without a kernel in the cache and a module for it
the guests are left out, and the test counts as skipped.
"""

import fcntl
import os
import re
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VM = ROOT / "scripts/vm"
KERNEL = "6.1"
MODULE = ROOT / f"build/kmod-{KERNEL}/smcfs.ko"
PROMPT = r"client [^\n]*# $"
BOOT_S = 400
COMMAND_S = 120
SKIP = 77


def expect(what: str, good: bool, seen: str) -> None:
    if not good:
        sys.exit(f"FAILED: {what}; seen:\n{seen[-3000:]}")
    print(f"ok: {what}", flush=True)


def refused(what: str, arguments: list[str], words: str) -> None:
    done = subprocess.run([VM, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    expect(f"{what} is refused", done.returncode == 2 and words in done.stderr, done.stderr)


def suggested() -> list[str]:
    """The commands that scripts/demo --shell tells its user to try."""
    text = (ROOT / "scripts/demo").read_text()
    shell = text[text.index("give_shell() {"):]
    lines = re.findall(r'^\tsay "    (.*)"$', shell[:shell.index("\n}")], re.MULTILINE)
    expect("scripts/demo suggests commands", len(lines) > 1, shell)
    return [command for line in lines for command in line.split("; ")]


class Terminal:
    def __init__(self, arguments: list[str]) -> None:
        self.seen = ""
        # Held open here, too: what a terminal is set to is lost with its last user.
        self.fd, self.other_end = os.openpty()
        self.settings = termios.tcgetattr(self.other_end)
        self.process = subprocess.Popen(
            [VM, *arguments], stdin=self.other_end, stdout=self.other_end, stderr=self.other_end,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def _read(self) -> None:
        while select.select([self.fd], [], [], 0.2)[0]:
            text = self.seen + os.read(self.fd, 65536).decode(errors="replace")
            self.seen = re.sub(r"\r|\x1b\[[?0-9;]*[A-Za-z]", "", text)

    def wait_for(self, pattern: str, seconds: float) -> str:
        """Output up to the pattern, which is then forgotten."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen)):
            over = self.process.poll() is not None or time.monotonic() > end
            self._read()
            if over and not re.search(pattern, self.seen):
                self.process.terminate()
                sys.exit(f"FAILED: no {pattern!r} within {seconds} s; seen:\n{self.seen[-3000:]}")
        text, self.seen = self.seen[:found.end()], self.seen[found.end():]
        return text

    def say(self, line: str) -> None:
        os.write(self.fd, line.encode() + b"\r")

    def end(self) -> int:
        """Its exit status, after the rest of its output."""
        while self.process.poll() is None:
            self._read()
        return self.process.returncode


def use_shell() -> None:
    # As scripts/demo --shell does.
    terminal = Terminal(["shell", "--kernel", KERNEL, "--name", "shell-test", "--env", "SOAK=0",
                         "--env", "SEED=1", "--env", "DEMO_SHELL=1",
                         str(ROOT / "tests/vm/demo.sh")])
    terminal.wait_for(PROMPT, BOOT_S)
    print("ok: a prompt", flush=True)
    terminal.say("mount -t smcfs; stat -c %n-%s /smc/target/weights; echo $((6 * 7)) done")
    text = terminal.wait_for(r"\n42 done\n", COMMAND_S)
    expect("/smc is mounted", "on /smc type smcfs" in text, text)
    expect("a region is there", re.search(r"\n/smc/target/weights-[1-9]", text) is not None, text)
    terminal.wait_for(PROMPT, COMMAND_S)
    terminal.say("echo written >/smc/target/weights && head -c 7 /smc/target/weights; false")
    terminal.wait_for(r"\nwritten\n?" + PROMPT, COMMAND_S)
    print("ok: a region can be written and read", flush=True)
    for command in suggested():
        terminal.say(f"({command}) && echo that $((6 * 7)) worked")
        terminal.wait_for(r"\nthat 42 worked\n" + PROMPT, COMMAND_S)
        print(f"ok: {command}", flush=True)
    terminal.say("exit")
    code = terminal.end()
    expect("exit ends it with success", code == 0, f"exit {code}: {terminal.seen}")
    expect("the terminal is as it was", termios.tcgetattr(terminal.fd) == terminal.settings, "")
    left = subprocess.run(["pgrep", "-f", f"{ROOT}/build/vm/{KERNEL}-shell-test"],
                          capture_output=True, text=True, check=False).stdout
    expect("no guest is left", not left, left)


def main() -> int:
    refused("a shell without a terminal", ["shell"], "terminal")
    refused("an unknown kernel", ["shell", "--kernel", "5.10"], "6.1")
    refused("a script that is not there", ["run", "tests/vm/nothing.sh"], "nothing.sh")
    if subprocess.run([ROOT / "scripts/kernels", "--path", KERNEL], capture_output=True,
                      check=False).returncode != 0 or not MODULE.exists():
        print(f"skipped: no kernel {KERNEL} or no module for it; "
              f"run scripts/kernels {KERNEL} and scripts/build-kmod {KERNEL}")
        return SKIP
    use_shell()
    return 0


if __name__ == "__main__":
    sys.exit(main())
