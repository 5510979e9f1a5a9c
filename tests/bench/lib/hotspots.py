# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""Where the instructions of a workload go: a boot under the plugin, its counts by function.

Counts are exact: every instruction of the guest between the workload's marks, whoever ran it, by
address; the guest's /proc/kallsyms names the functions.
"""

import bisect
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import machine
from errors import VmError

KERNEL_HALF = 1 << 63
PLUGIN = Path("build/release/tests/bench/profile.so")


class Symbols:
    """The functions of the guest's kernel, from lines as in /proc/kallsyms."""

    def __init__(self) -> None:
        self._symbols: list[tuple[int, str]] = []
        self._starts: list[int] = []

    def add(self, line: str) -> None:
        address, kind, name, *module = line.split()
        if kind in "tTwW":
            self._symbols.append((int(address, 16), name + (f" {module[0]}" if module else "")))

    def finish(self) -> None:
        self._symbols.sort()
        self._starts = [start for start, _ in self._symbols]

    def name(self, address: int) -> str:
        if address < KERNEL_HALF:
            return "(programs)"
        index = bisect.bisect_right(self._starts, address) - 1
        return self._symbols[index][1] if index >= 0 else "(unknown)"


class Profile:
    """What the plugin counted, by function."""

    def __init__(self, file: Path, symbols: Symbols) -> None:
        self.marks = 0
        self.own: Counter = Counter()  # instructions of the function itself
        self.all: Counter = Counter()  # with what it calls; a recursion counts once
        self.names: dict[int, str] = {}  # of paths of calls
        self.totals: Counter = Counter()  # of these paths, with what they call
        self.children: dict[int, list[int]] = {}
        calls: dict[int, tuple[int, str, int]] = {}  # parent, name, own instructions
        for line in file.read_text().splitlines():
            kind, *numbers = line.split()
            values = [int(number, 16) for number in numbers]
            if kind == "marks":
                self.marks = values[0]
            elif kind == "block":
                self.own[symbols.name(values[0])] += values[1]
            elif kind == "call":
                calls[values[0]] = (values[1], symbols.name(values[2]), values[3])
        self._add_up(calls)

    def _add_up(self, calls: dict[int, tuple[int, str, int]]) -> None:
        # Parents have the lower numbers.
        for call in sorted(calls, reverse=True):
            parent, name, own = calls[call]
            self.names[call] = name
            self.totals[call] += own
            self.totals[parent] += self.totals[call]
            self.children.setdefault(parent, []).append(call)
        above: dict[int, frozenset[str]] = {0: frozenset()}
        for call in sorted(calls):
            parent, name, _ = calls[call]
            above[call] = above[parent] | {name}
            if name not in above[parent]:
                self.all[name] += self.totals[call]

    def below(self, names: re.Pattern[str]) -> int:
        """Instructions of functions of these names, with what they call, each once."""
        count = 0
        waiting = list(self.children.get(0, []))
        while waiting:
            call = waiting.pop()
            if names.fullmatch(self.names[call]):
                count += self.totals[call]
            else:
                waiting += self.children.get(call, [])
        return count


def module_of(name: str) -> str:
    return name.split("[")[1].rstrip("]") if "[" in name else (
        "programs" if name == "(programs)" else "kernel")


def print_top(title: str, counter: Counter, whole: Profile, top: int) -> None:
    total = sum(whole.own.values())
    print(f"\n  {title}")
    for name, count in counter.most_common(top):
        print(f"  {count / total * 100:6.2f} %  {count / whole.marks:14,.0f}  {name}")


def print_tree(profile: Profile, call: int, least: float, depth: int = 0) -> None:
    """Who calls whom, down to a share of the whole; a chain of single calls is one line."""
    total = sum(profile.own.values())
    for child in sorted(profile.children.get(call, []), key=lambda one: -profile.totals[one]):
        count = profile.totals[child]
        if count < least * total:
            break
        names = [profile.names[child]]
        last = child
        while True:
            next_ones = profile.children.get(last, [])
            heavy = [one for one in next_ones if profile.totals[one] >= least * total]
            if len(heavy) != 1 or profile.totals[heavy[0]] < 0.95 * count:
                break
            last = heavy[0]
            names.append(profile.names[last])
        shown = names if len(names) <= 3 else [names[0], "...", names[-1]]
        print(f"  {count / total * 100:6.2f} %  {count / profile.marks:14,.0f}  "
              + "  " * depth + " > ".join(shown))
        print_tree(profile, last, least, depth + 1)


def print_profile(title: str, profile: Profile, top: int) -> None:
    total = sum(profile.own.values())
    if not profile.marks or not total:
        raise VmError(f"{title}: nothing was counted between marks")
    print(f"\n{title}: {total / profile.marks:,.0f} instructions for one repetition, "
          f"of {profile.marks}")
    modules: Counter = Counter()
    for name, count in profile.own.items():
        modules[module_of(name)] += count
    print_top("by module", modules, profile, 8)
    print_top("by function, its own instructions", profile.own, profile, top)
    print_top("by function, with what it calls", profile.all, profile, 2 * top)
    print("\n  who calls whom, 0.7 % or more")
    print_tree(profile, 0, 0.007)


def profile(boot: machine.Boot, root: Path, on_line: Callable[[dict], None]) -> Profile:
    """Boot under the plugin. The boot's parts measure what is wanted and tell the symbols."""
    out = boot.log.with_suffix(".counts")
    symbols = Symbols()
    machine.run(replace(boot, plugin=f"{root / PLUGIN},out={out}"), on_line, symbols.add)
    symbols.finish()
    return Profile(out, symbols)


# Where dirty tracking is done: a store's fault, write protection, and the harvest of hot pages.
TRACKING = re.compile(r"asm_exc_page_fault|folio_clear_dirty_for_io|folio_mkclean"
                      r"|clean_record_shared_mapping_range|smcfs_hot_(?!flush)\w+ .*")


def tracking_cost(found: Profile) -> int:
    """Instructions of dirty tracking in all repetitions."""
    return found.below(TRACKING)
