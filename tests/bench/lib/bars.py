# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""What the cells of one kernel amount to: SMC against raw verbs for the same bytes, and how near it
has to come. (What raw verbs take for a workload, smcbench says in its cell.)
"""

from collections.abc import Callable
from dataclasses import dataclass


class Missing(Exception):
    """A cell that a ratio needs was not measured: which, and why."""


def find(cells: dict, side: str, workload: str) -> dict:
    """The cell of a guest, or Missing with the reason that the guest gave."""
    try:
        return cells[side][workload]
    except KeyError:
        why = cells.get("missing", {}).get(f"{side}/{workload}")
        raise Missing(why or f"{workload} of a region that is {side} was not measured") from None


def times_raw(_cells: dict, cell: dict) -> float:
    if "raw_ns" not in cell:
        raise Missing("raw verbs were not measured")
    return cell["ns"] / cell["raw_ns"]


def speed_up(_cells: dict, cell: dict) -> float:
    if "raw_each_ns" not in cell:
        raise Missing("raw verbs were not measured")
    return cell["raw_each_ns"] / cell["ns"]


def over(side: str, workload: str, key: str = "ns") -> Callable[[dict, dict], float]:
    return lambda cells, cell: cell[key] / find(cells, side, workload)[key]


@dataclass(frozen=True)
class Bar:
    """A line of the table, of a region's policy and a workload."""

    name: str
    mtu: int
    side: str
    workload: str
    reach: float
    compute: Callable[[dict, dict], float] = times_raw
    more_is_better: bool = False

    def value(self, cells: dict) -> float:
        return self.compute(cells, find(cells, self.side, self.workload))

    def reached(self, value: float) -> bool:
        return value >= self.reach if self.more_is_better else value <= self.reach


BARS = (
    Bar("bulk_4m_9000", 9000, "exclusive", "bulk_4m", 1.06),
    Bar("bulk_4m_1500", 1500, "exclusive", "bulk_4m", 1.05),
    Bar("bulk_4m_9000_merge", 9000, "merge", "bulk_4m", 1.20),
    Bar("cold_bulk_4m_9000", 9000, "exclusive", "cold_bulk_4m", 1.20),
    Bar("float_update_9000", 9000, "merge", "float_update", 1.30),
    Bar("one_store_9000", 9000, "merge", "one_store", 1.8),
    Bar("hot_64b_9000", 9000, "exclusive", "hot_64b", 1.30),
    Bar("sparse_64b_9000", 9000, "merge", "sparse_64b", 1.25),
    Bar("hot_vs_small_writes", 9000, "exclusive", "hot_64b_many", 250, speed_up, True),
    Bar("fault_4k_9000", 9000, "exclusive", "fault_4k", 1.25),
    Bar("seq_read_9000", 9000, "exclusive", "seq_read", 1.12),
    Bar("barrier_scale", 9000, "standin-16t", "barrier_whole", 1.1,
        over("standin-16m", "barrier_whole", "barrier_ns")),
    Bar("dirty_cost_hot", 9000, "exclusive", "dirty_cost", 0.05, over("cold", "dirty_cost")),
    Bar("attach_scale", 9000, "standin", "attach_64g", 1.1, over("standin", "attach_64m")),
)


def ratios(by_mtu: dict[str, dict]) -> tuple[dict[str, float], dict[str, str]]:
    """The ratios that could be computed, and why the others could not."""
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    for bar in BARS:
        try:
            values[bar.name] = round(bar.value(by_mtu.get(str(bar.mtu), {})), 4)
        except Missing as why:
            missing[bar.name] = str(why)
    return values, missing
