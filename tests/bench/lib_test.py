#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""What scripts/bench makes of the lines of a guest and of the plugin's counts."""

import contextlib
import io
import json
import re
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE / "lib"), str(HERE.parent / "vm/lib")]

import bars  # noqa: E402
import summary  # noqa: E402
from hotspots import Profile, Symbols  # noqa: E402
from results import Results  # noqa: E402


def cell(side: str, workload: str, **more) -> dict:
    return {"part": "cell", "side": side, "workload": workload, "ns": 1000, "bytes": 64, **more}


class Ratios(unittest.TestCase):
    def setUp(self) -> None:
        self.results = Results()

    def add(self, *lines: dict, mtu: int = 9000) -> None:
        for line in lines:
            self.results.add("6.1", mtu, line)

    def ratios(self) -> tuple[dict, dict]:
        return bars.ratios(self.results.kernels["6.1"])

    def test_raw_is_the_median_of_its_runs(self) -> None:
        self.add(*({"part": "raw", "test": "write", "bytes": 64, "us": us} for us in (1, 9, 2)))
        self.assertEqual(self.results.kernels["6.1"]["9000"]["raw"]["write/64"]["ns"], 2000)

    def test_a_ratio_is_over_raw_of_the_same_mtu(self) -> None:
        self.add(cell("exclusive", "bulk_4m", raw_ns=500))
        self.add(cell("exclusive", "bulk_4m", raw_ns=800), mtu=1500)
        values, _ = self.ratios()
        self.assertEqual((values["bulk_4m_9000"], values["bulk_4m_1500"]), (2.0, 1.25))

    def test_speed_up_counts_a_write_for_each_store(self) -> None:
        self.add(cell("exclusive", "hot_64b_many", raw_ns=1, raw_each_ns=250000))
        self.assertEqual(self.ratios()[0]["hot_vs_small_writes"], 250)

    def test_scale_compares_barriers_alone(self) -> None:
        self.add(cell("standin-16m", "barrier_whole", barrier_ns=100),
                 cell("standin-16t", "barrier_whole", barrier_ns=110, ns=9999))
        self.assertEqual(self.ratios()[0]["barrier_scale"], 1.1)

    def test_what_is_missing_says_why(self) -> None:
        self.add({"part": "missing", "cell": "merge/float_update", "why": "no such policy"},
                 cell("exclusive", "seq_read"))
        values, missing = self.ratios()
        self.assertEqual(missing["float_update_9000"], "no such policy")
        self.assertIn("raw verbs", missing["seq_read_9000"])
        self.assertEqual({*values, *missing}, {bar.name for bar in bars.BARS})

    def test_a_failed_part_is_a_failure(self) -> None:
        self.add({"failed": "smc", "why": "exit 1"})
        self.assertEqual(len(self.results.failures), 1)

    def test_boots_are_compared(self) -> None:
        self.add(cell("exclusive", "bulk_4m"), cell("exclusive", "bulk_4m", ns=1010))
        self.assertAlmostEqual(self.results.repeat_error(), 1.0)

    def test_results_are_written_with_every_cell(self) -> None:
        self.add({"part": "raw", "test": "write", "bytes": 64, "us": 1},
                 cell("exclusive", "bulk_4m", raw_ns=500))
        with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(io.StringIO()) as text:
            summary.write(self.results, Path(out))
            written = json.loads(Path(out, "results.json").read_text())
        self.assertEqual(written["ratios"], {"bulk_4m_9000": 2.0})
        self.assertEqual(written["kernels"]["6.1"]["cells"]["9000"]["exclusive"]["bulk_4m"]["ns"],
                         1000)
        self.assertIn("bulk_4m", text.getvalue())


class Profiles(unittest.TestCase):
    def profile(self, text: str) -> Profile:
        symbols = Symbols()
        for line in ("ffffffff00000100 T outer", "ffffffff00000200 t inner [mod]",
                     "ffffffff00000300 D data"):
            symbols.add(line)
        symbols.finish()
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            return Profile(Path(file.name), symbols)

    def test_own_instructions_are_those_of_blocks(self) -> None:
        found = self.profile("marks 2\nblock ffffffff00000110 10\nblock ffffffff00000310 1\n"
                             "block 1000 4\n")
        self.assertEqual(found.marks, 2)
        self.assertEqual(found.own, {"outer": 16, "inner [mod]": 1, "(programs)": 4})

    def test_callers_have_what_they_call_and_recursion_counts_once(self) -> None:
        found = self.profile("marks 1\ncall 1 0 ffffffff00000100 1\n"
                             "call 2 1 ffffffff00000200 2\ncall 3 2 ffffffff00000100 4\n")
        self.assertEqual(found.all, {"outer": 7, "inner [mod]": 6})

    def test_functions_are_counted_below_the_topmost_of_their_names(self) -> None:
        found = self.profile("marks 1\ncall 1 0 ffffffff00000100 1\n"
                             "call 2 1 ffffffff00000200 2\ncall 3 2 ffffffff00000100 4\n")
        self.assertEqual(found.below(re.compile("inner .*")), 6)
        self.assertEqual(found.below(re.compile("outer|inner .*")), 7)
        self.assertEqual(found.below(re.compile("none")), 0)


if __name__ == "__main__":
    unittest.main()
