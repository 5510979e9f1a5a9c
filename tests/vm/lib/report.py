# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""What a run tells: lines while it goes on, and a table of results for scripts/test."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

OK, NOT_OK, SKIP = "ok", "not ok", "skip"


@dataclass(frozen=True)
class Result:
    verdict: str
    kernel: str
    script: str
    case: str
    reason: str


class Report:
    def __init__(self, kernel: str) -> None:
        self._kernel = kernel
        self._start = time.monotonic()
        self.results: list[Result] = []

    def line(self, text: str) -> None:
        print(f"[{time.monotonic() - self._start:6.1f}] {text}", flush=True)

    def detail(self, lines: list[str]) -> None:
        for line in lines:
            print(f"         | {line}", flush=True)

    def result(self, verdict: str, script: str, case: str, reason: str = "") -> None:
        self.results.append(Result(verdict, self._kernel, script, case, reason))
        why = f" # {reason}" if reason else ""
        self.line(f"{verdict:6} {self._kernel} {script}: {case}{why}")

    def count(self, verdict: str) -> int:
        return sum(result.verdict == verdict for result in self.results)

    def finish(self, file: Path) -> bool:
        """Write the table, print the sum; true when something passed and nothing failed."""
        with file.open("w") as out:
            for result in self.results:
                fields = (result.verdict, result.kernel, result.script, result.case,
                          result.reason)
                print("\t".join(field.replace("\t", " ") for field in fields), file=out)
        self.line(f"{self.count(OK)} passed, {self.count(NOT_OK)} failed, "
                  f"{self.count(SKIP)} skipped")
        sys.stdout.flush()
        return self.count(NOT_OK) == 0 and bool(self.results)
