# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""What a run found: the table on the terminal, results.json, and the plots.

Failure: without gnuplot the plots are left out, and it says so.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import bars
from results import Results

SIDES = ("exclusive", "merge", "cold", "merge_cold", "nfs", "nvme")
PLOT = """set terminal pngcairo size 1000,520 font ",10"
set output "{out}"
set title "{title}"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.8 border -1
set boxwidth 0.9
set grid ytics
set ylabel "time / raw verbs, lower is better"
set yrange [0:*]
set xtics rotate by -25
set key top left
set datafile missing "-"
set arrow from graph 0, first 1 to graph 1, first 1 nohead dashtype 2 linewidth 2 front
$data << END
{data}
END
plot {series}
"""


def times_raw(cells: dict, side: str, workload: str) -> float | None:
    """How many times as long as raw verbs."""
    try:
        return bars.times_raw(cells, bars.find(cells, side, workload))
    except bars.Missing:
        return None


def sides_of(cells: dict) -> list[str]:
    return [side for side in SIDES if side in cells]


def workloads_of(cells: dict) -> list[str]:
    """All that one of the sides has, in the order of smcbench."""
    names: dict[str, None] = {}
    for side in sides_of(cells):
        names.update(dict.fromkeys(name for name, cell in cells[side].items() if "ns" in cell))
    return list(names)


# --- the terminal ------------------------------------------------------------------------------

def print_raw(cells: dict) -> None:
    print("  raw verbs, us for one operation")
    for name, cell in sorted(cells.get("raw", {}).items(),
                             key=lambda item: (item[0].split("/")[0], item[1]["bytes"])):
        spread = max(cell["runs"]) - min(cell["runs"])
        print(f"    {name:22} {cell['ns'] / 1e3:12.2f}   spread {spread / cell['ns'] * 100:5.2f} %"
              f"   {cell['bytes'] * 1e3 / cell['ns']:8.1f} MB/s")


def print_cells(cells: dict) -> None:
    sides = sides_of(cells)
    print("  " + "mappings, us (times raw verbs)".ljust(30)
          + "".join(side.rjust(20) for side in sides))
    for workload in workloads_of(cells):
        row = []
        for side in sides:
            cell = cells[side].get(workload)
            times = times_raw(cells, side, workload)
            row.append("-" if cell is None else f"{cell['ns'] / 1e3:.1f}"
                       + (f" ({times:.2f})" if times else ""))
        if any(text != "-" for text in row):
            print(f"    {workload:28}" + "".join(text.rjust(20) for text in row))


def print_ratios(kernels: dict) -> None:
    print("\nratios (SMC / raw verbs; hot_vs_small_writes: a speed-up)")
    print("  " + "name".ljust(24) + "reach".rjust(8)
          + "".join(f"Linux {kernel}".rjust(14) for kernel in kernels))
    for bar in bars.BARS:
        row = []
        for cells in kernels.values():
            value = cells["ratios"].get(bar.name)
            row.append("missing" if value is None
                       else f"{value:.3f}" + (" *" if bar.reached(value) else "  "))
        print(f"  {bar.name:24}{bar.reach:8}" + "".join(text.rjust(14) for text in row))
    print("  * reached")
    for kernel, cells in kernels.items():
        for name, why in cells["missing"].items():
            print(f"  missing on {kernel}: {name}: {why}")


# --- files -------------------------------------------------------------------------------------

def model(results: Results) -> dict:
    kernels = {}
    for kernel, by_mtu in results.kernels.items():
        values, missing = bars.ratios(by_mtu)
        kernels[kernel] = {"ratios": values, "missing": missing, "cells": by_mtu}
    first = kernels.get("6.1") or next(iter(kernels.values()), {"ratios": {}, "missing": {}})
    return {
        "unit": "ns of the guest: instructions, of both ends together",
        "ratios": first["ratios"],
        "missing": first["missing"],
        "reach": {bar.name: bar.reach for bar in bars.BARS},
        "repeat_error_percent": round(results.repeat_error(), 3),
        "kernels": kernels,
    }


def plot(out: Path, title: str, rows: list[tuple[str, list[float | None]]],
         names: list[str]) -> None:
    data = "\n".join(f'"{label}" ' + " ".join("-" if value is None else f"{value:.4f}"
                                              for value in values) for label, values in rows)
    series = ", ".join(f'$data using {column}:xtic(1) title "{name}"'
                       for column, name in enumerate(names, 2))
    text = PLOT.format(out=out, title=title, data=data.replace("_", "\\\\_"), series=series)
    subprocess.run(["gnuplot"], input=text, text=True, check=True)


def plots(kernels: dict, out: Path) -> None:
    if shutil.which("gnuplot") is None:
        print("bench: no plots: gnuplot is missing; run scripts/setup", file=sys.stderr)
        return
    for kernel, whole in kernels.items():
        for mtu, cells in whole["cells"].items():
            sides = sides_of(cells)
            rows = [(workload, [times_raw(cells, side, workload) for side in sides])
                    for workload in workloads_of(cells)]
            rows = [row for row in rows if any(row[1])]
            if rows:
                plot(out / f"workloads-{kernel}-{mtu}.png",
                     f"Time over raw verbs, Linux {kernel}, MTU {mtu}", rows, sides)


def write(results: Results, out: Path) -> None:
    whole = model(results)
    for kernel, by_mtu in results.kernels.items():
        for mtu, cells in by_mtu.items():
            print(f"\nLinux {kernel}, MTU {mtu}")
            print_raw(cells)
            print_cells(cells)
    print_ratios(whole["kernels"])
    if error := whole["repeat_error_percent"]:
        print(f"  boots differ by {error} % at most")
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n")
    plots(whole["kernels"], out)
    print(f"\n{out}/results.json")
