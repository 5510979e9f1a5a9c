# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""One boot of all guests, and the scripts that run in it, one after the other.

Owns: the guests, their network, and the answers that they wait for. A guest asks `ID VERB WORDS...` and
gets `ID ok VALUE` or `ID err REASON`; meeting points hold the answer back until every node
has come.

Contexts: one asyncio loop; nothing here blocks.
Failure: a script passes only when each node sent its token and ended well. Silence past
the deadline, a guest that ends by itself and a kernel report in a log are failures. After
a failure the boot ends, and the scripts that are left go into a fresh one.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable

from errors import VmError
from guest import Boot, Guest, Shape, node_names
from network import Network
from report import NOT_OK, OK, SKIP, Report
from scan import scan, stands_still
from script import Script

BOOT_TIMEOUT_S = 400   # a debug kernel on a busy machine
HALT_TIMEOUT_S = 400   # the leak scan of a debug kernel
DEBUG_SLOWER = 4       # the debug kernel's programs, in about
DUMP_S = 5             # how long guests may take to print who is stuck
EXIT_SKIP = 77
TAIL_LINES = 30


class Session:
    def __init__(self, boot: Boot, shape: Shape, scripts: list[Script], report: Report,
                 shell: bool = False, boot_again: bool = False) -> None:
        """boot_again: guests that do not come up are no failure yet; the caller tries again."""
        self._boot = boot
        self._boot_again = boot_again
        self._shell = shell
        self._report = report
        self._network = Network(boot.switch, shape.nodes, shape.nics)
        self._guests = [Guest(name, index + 1, shape, boot, self._network)
                        for index, name in enumerate(node_names(shape.nodes))]
        self._left = deque(scripts)
        self._done: list[Script] = []
        self._finished: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._halting = False
        self._deadline: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task] = set()
        # Meeting points: what each waiting node came to, and the request to answer.
        self._met: dict[tuple[str, str], dict[Guest, str]] = {}
        self._begin_script(None)

    def _begin_script(self, script: Script | None) -> None:
        self._script = script
        self._nonce = secrets.token_hex(8)
        self._passed: set[Guest] = set()
        self._ended: dict[Guest, tuple[int, str]] = {}
        self._values: dict[str, str] = {}
        self._value_waiters: dict[str, list[tuple[Guest, str]]] = {}
        self._case: str | None = None
        self._case_verdict: tuple[int, str] | None = None  # the first that is not success
        self._case_start = 0.0
        self._failures = 0
        self._cases = 0

    # --- the run -------------------------------------------------------------------------

    async def run(self) -> list[Script]:
        """Boot, run, end the guests. Returns the scripts that did not get their turn."""
        trouble = ""
        self._set_deadline(BOOT_TIMEOUT_S, "the guests did not boot")
        try:
            await self._network.start()
            starts = [guest.start(self._shell and guest.name == "client", self._on_line)
                      for guest in self._guests]
            await asyncio.gather(*starts)
            for guest in self._guests:
                guest.ended.add_done_callback(lambda _, guest=guest: self._on_end(guest))
            trouble = await self._finished
        finally:
            if self._deadline:
                self._deadline.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, *(guest.end() for guest in self._guests),
                                 return_exceptions=True)
            await self._network.end()
        if trouble and self._boot_again and self._script is None:
            self._report.line(f"boot once more: {trouble}")
            self._print_tails()
        elif trouble:
            name = self._script.name if self._script else "boot"
            self._report.result(NOT_OK, name, self._case or "ends with its tokens", trouble)
            self._print_tails()
            if self._script is None:
                # What does not boot twice will not boot for the next script either.
                for script in self._left:
                    self._report.result(NOT_OK, script.name, "ran", "no guest to run in")
                self._left.clear()
        self._scan_logs()
        return list(self._left)

    def _set_deadline(self, seconds: float, what: str) -> None:
        if self._deadline:
            self._deadline.cancel()
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(
            seconds, lambda: self._spawn(self._on_deadline(f"{what} within {seconds:g} s")))

    async def _on_deadline(self, reason: str) -> None:
        boots = self._script is None and not self._halting
        for guest in self._guests:
            guest.send("!dump")
        for guest in self._guests if boots else []:
            self._report.line(f"{guest.name}:")
            self._report.detail(await guest.where())
        await asyncio.sleep(DUMP_S)
        if boots and self._script is not None:
            return  # up at the last moment
        waits = [f"{guest.name} at {kind} {name}".strip()
                 for (kind, name), met in self._met.items() for guest in met]
        self._finish(reason + (f"; waiting: {', '.join(waits)}" if waits else ""))

    def _on_end(self, guest: Guest) -> None:
        if not guest.killed and not self._halting:
            self._finish(f"{guest.name}: {guest.ended.result()}")
        elif self._halting and all(guest.ended.done() for guest in self._guests):
            self._finish("")

    def _finish(self, trouble: str) -> None:
        if not self._finished.done():
            self._finished.set_result(trouble)

    def _spawn(self, work) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _print_tails(self) -> None:
        for guest in self._guests:
            self._report.line(f"the end of {guest.log}:")
            if guest.log.exists():
                lines = guest.log.read_text(errors="replace").splitlines()
                self._report.detail(lines[-TAIL_LINES:])

    def _print_case(self, guest: Guest) -> None:
        """What a node printed since the case began, as far as it has come to the log."""
        if not guest.log.exists():
            return
        assert self._script
        log = guest.log.read_text(errors="replace")
        start = max(log.rfind(f"smc case: {self._script.name}: {self._case}"), 0)
        self._report.line(f"the end of this case in {guest.log}:")
        self._report.detail(log[start:].splitlines()[-TAIL_LINES:])

    def card_stood_still(self) -> bool:
        """Did an emulated network card cease to send, as the kernel of its guest found?"""
        return any(stands_still(guest.log) for guest in self._guests if guest.log.exists())

    def _scan_logs(self) -> None:
        allow = {script.name: script.allow for script in self._done}
        for guest in self._guests:
            if not guest.log.exists():
                continue
            for hit in scan(guest.log, allow):
                script, _, case = hit.case.partition(": ")
                self._report.result(NOT_OK, script or "boot",
                                    f"kernel log of {guest.name} is clean",
                                    f"after case '{case}'; all of it: {guest.log}")
                self._report.detail(hit.lines)

    # --- requests ------------------------------------------------------------------------

    def _on_line(self, guest: Guest, line: str) -> None:
        request, _, rest = line.partition(" ")
        verb, _, words = rest.partition(" ")
        handler: Callable[[Guest, str, str], None] | None = getattr(
            self, f"_do_{verb.replace('-', '_')}", None)
        if handler is None:
            guest.send(f"{request} err no such request: {verb}")
            return
        handler(guest, request, words)

    def _alive(self) -> list[Guest]:
        return [guest for guest in self._guests if not guest.killed]

    def _meet(self, guest: Guest, request: str, kind: str, name: str = "") -> bool:
        """Note that guest has come; true when it was the last of all."""
        self._met.setdefault((kind, name), {})[guest] = request
        return self._all_met(kind, name)

    def _all_met(self, kind: str, name: str) -> bool:
        met = self._met.get((kind, name), {})
        return bool(met) and all(guest in met for guest in self._alive())

    def _release(self, kind: str, name: str, answer: str) -> None:
        for guest, request in self._met.pop((kind, name), {}).items():
            guest.send(f"{request} {answer}")

    def _fail_waits(self, reason: str) -> None:
        """What waits inside a case learns that it waits in vain."""
        for kind, name in [key for key in self._met if key[0] == "barrier"]:
            self._release(kind, name, f"err {reason}")
        for waiters in self._value_waiters.values():
            for guest, request in waiters:
                guest.send(f"{request} err {reason}")
        self._value_waiters.clear()

    def _vain(self) -> str:
        """Why a wait that starts now would be in vain; empty when it is not."""
        if self._case is not None and self._case_verdict:
            return f"the case has ended on another node: {self._case_verdict[1]}"
        if self._ended:
            return f"the script has ended on {', '.join(g.name for g in self._ended)}"
        return ""

    # --- requests: the life of a boot ----------------------------------------------------

    def _do_hello(self, guest: Guest, request: str, _words: str) -> None:
        if self._meet(guest, request, "hello"):
            self._report.line(f"{len(self._guests)} guests up, kernel {self._boot.kernel}")
            self._release("hello", "", "ok")

    def _do_next(self, guest: Guest, request: str, _words: str) -> None:
        if self._meet(guest, request, "next"):
            self._next()

    def _next(self) -> None:
        if self._left and not self._failures:
            script = self._left.popleft()
            self._done.append(script)
            self._begin_script(script)
            self._report.line(f"run    {self._boot.kernel} {script.name}")
            slower = DEBUG_SLOWER if self._boot.kernel == "debug" else 1
            self._set_deadline(script.timeout * slower, "the script did not end")
            self._release("next", "", f"ok run {self._nonce} {script.path}")
        elif self._shell and not self._halting and not self._failures:
            self._halting = True  # the user ends it, at any time
            if self._deadline:
                self._deadline.cancel()
            for guest, request in self._met.pop(("next", "")).items():
                if guest.name == "client":
                    guest.send(f"{request} ok shell")
        else:
            self._halt()
            self._release("next", "", "ok halt")

    def _halt(self) -> None:
        self._halting = True
        self._set_deadline(HALT_TIMEOUT_S, "the guests did not halt")

    def _do_shell_end(self, guest: Guest, request: str, _words: str) -> None:
        guest.send(f"{request} ok")
        self._finish("")

    def _do_halted(self, guest: Guest, request: str, _words: str) -> None:
        if self._meet(guest, request, "halted"):
            self._finish("")

    def _do_pass(self, guest: Guest, request: str, words: str) -> None:
        good = words == self._nonce
        if good:
            self._passed.add(guest)
        guest.send(f"{request} {'ok' if good else 'err wrong token'}")

    def _do_script_end(self, guest: Guest, request: str, words: str) -> None:
        code, _, reason = words.partition(" ")
        self._ended[guest] = (int(code), reason)
        guest.send(f"{request} ok")
        self._fail_waits(self._vain())
        for kind in ("case-begin", "case-end"):
            for met, name in [key for key in self._met if key[0] == kind]:
                self._release(met, name, f"err {self._vain()}")
        if all(alive in self._ended for alive in self._alive()):
            self._judge()

    def _judge(self) -> None:
        """All nodes have ended the script: did it pass?"""
        assert self._script
        name = self._script.name
        ends = {guest: self._ended[guest] for guest in self._alive()}
        if self._cases == 0 and all(code == EXIT_SKIP for code, _ in ends.values()):
            self._report.result(SKIP, name, "all of it", next(iter(ends.values()))[1])
            return
        for guest, (code, reason) in ends.items():
            if code != 0 or guest not in self._passed:
                why = f"exit {code} {reason}".strip() if code else "ended without `pass`"
                self._report.result(NOT_OK, name, f"ends with its token on {guest.name}", why)
                self._failures += 1
        if self._cases == 0 and not self._failures:
            self._report.result(NOT_OK, name, "has cases", "it ran none")
            self._failures += 1
        if self._failures:
            self._print_tails()

    # --- requests: cases -----------------------------------------------------------------

    def _do_case_begin(self, guest: Guest, request: str, words: str) -> None:
        if vain := self._vain():
            guest.send(f"{request} err {vain}")
            return
        others = [key for key in self._met if key[0] == "case-begin" and key[1] != words]
        if others:
            self._finish(f"{guest.name} came to case '{words}', "
                         f"others to '{others[0][1]}': cases must be the same on all nodes")
        elif self._meet(guest, request, "case-begin", words):
            self._case, self._case_verdict = words, None
            self._case_start = asyncio.get_running_loop().time()
            self._release("case-begin", words, "ok")

    def _do_case_end(self, guest: Guest, request: str, words: str) -> None:
        code, _, reason = words.partition(" ")
        if int(code) and self._case_verdict is None:
            # What the other nodes report after this is its consequence.
            self._case_verdict = (int(code), f"{guest.name}: {reason}")
            if int(code) != EXIT_SKIP:
                self._print_case(guest)
            self._fail_waits(self._vain())
        if self._meet(guest, request, "case-end"):
            self._close_case()

    def _close_case(self) -> None:
        assert self._script
        code, reason = self._case_verdict or (0, "")
        verdict = {0: OK, EXIT_SKIP: SKIP}.get(code, NOT_OK)
        self._cases += 1
        self._failures += verdict == NOT_OK
        if verdict == OK:
            seconds = asyncio.get_running_loop().time() - self._case_start
            self._report.result(verdict, self._script.name, self._case, f"{seconds:.1f} s")
        else:
            self._report.result(verdict, self._script.name, self._case, reason)
        self._case, self._case_verdict = None, None
        self._release("case-end", "", "ok")

    # --- requests: between nodes ---------------------------------------------------------

    def _do_barrier(self, guest: Guest, request: str, words: str) -> None:
        if vain := self._vain():
            guest.send(f"{request} err {vain}")
        elif self._meet(guest, request, "barrier", words):
            self._release("barrier", words, "ok")

    def _do_put(self, guest: Guest, request: str, words: str) -> None:
        name, _, value = words.partition(" ")
        self._values[name] = value
        guest.send(f"{request} ok")
        for waiter, waiting in self._value_waiters.pop(name, []):
            waiter.send(f"{waiting} ok {value}")

    def _do_get(self, guest: Guest, request: str, words: str) -> None:
        if words in self._values:
            guest.send(f"{request} ok {self._values[words]}")
        elif vain := self._vain():
            guest.send(f"{request} err {vain}")
        else:
            self._value_waiters.setdefault(words, []).append((guest, request))

    def _do_say(self, guest: Guest, request: str, words: str) -> None:
        self._report.line(f"  {words}")
        guest.send(f"{request} ok")

    # --- requests: faults ----------------------------------------------------------------

    def _do_ctl(self, guest: Guest, request: str, words: str) -> None:
        self._spawn(self._ctl(guest, request, words.split()))

    async def _ctl(self, guest: Guest, request: str, words: list[str]) -> None:
        try:
            await self._fault(*words)
            guest.send(f"{request} ok")
        except (VmError, TypeError) as error:
            guest.send(f"{request} err vm_ctl {' '.join(words)}: {error}")

    async def _fault(self, action: str, node: str, state: str = "", nic: str = "0") -> None:
        victim = next((guest for guest in self._guests if guest.name == node), None)
        if victim is None:
            raise VmError(f"no node {node}")
        match action, state:
            case "stop" | "cont", "":
                await victim.set_running(action == "cont")
            case "link", "up" | "down":
                await victim.qmp("set_link", name=f"nic{nic}", up=state == "up")
            case "kill", "":
                victim.killed = True
                await victim.end()
                self._on_kill(victim)
            case _:
                raise VmError("want stop|cont|kill NODE, or link NODE up|down [NIC]")

    def _on_kill(self, victim: Guest) -> None:
        """Nobody waits for a dead node: what lacked only it goes on."""
        for met in self._met.values():
            met.pop(victim, None)
        for kind, name in list(self._met):
            if not self._all_met(kind, name):
                continue
            if kind == "case-end":
                self._close_case()
            elif kind == "next":
                self._next()
            elif kind == "barrier":
                self._release(kind, name, "ok")
        if self._script and self._ended and all(g in self._ended for g in self._alive()):
            self._judge()
