# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""The lines of guests, gathered into cells: KERNEL, MTU, side, name.

Sides are `raw` (perftest; names are TEST/BYTES), the policy of SMC's region, a peer's name, and
`missing` (why a cell is not there).
"""

import statistics


class Results:
    def __init__(self) -> None:
        self.kernels: dict[str, dict[str, dict]] = {}
        self.failures: list[str] = []

    def guest(self, kernel: str, mtu: int) -> dict:
        return self.kernels.setdefault(kernel, {}).setdefault(str(mtu), {})

    def add(self, kernel: str, mtu: int, line: dict) -> str | None:
        """Put a line where it belongs; returns what to tell whoever watches."""
        cells = self.guest(kernel, mtu)
        if part := line.get("failed"):
            self.failures.append(f"{kernel}, MTU {mtu}: {part}: {line.get('why')}")
            return f"failed: {part}: {line.get('why')}"
        if part := line.get("done"):
            return f"{part} is done"
        match line.pop("part", None):
            case "guest":
                cells["guest"] = line
                return f"Linux {line['kernel']}, RDMA MTU {line['rdma_mtu']}"
            case "raw":
                return self._add_raw(cells, line)
            case "missing":
                side = cells.setdefault("missing", {})
                side[line["cell"]] = line["why"]
                return f"{line['cell']}: missing: {line['why']}"
            case "cell":
                side = cells.setdefault(line.pop("side"), {})
                # Of several boots the first gives the cell, the others only how well it is repeated.
                name = line.pop("workload")
                if name in side:
                    side[name].setdefault("repeats", []).append(line["ns"])
                else:
                    side[name] = line
                return f"{name}: {line['ns'] / 1e3:.2f} us"
        return None

    @staticmethod
    def _add_raw(cells: dict, line: dict) -> str | None:
        side = cells.setdefault("raw", {})
        cell = side.setdefault(f"{line['test']}/{line['bytes']}", {"bytes": line["bytes"], "runs": []})
        cell["runs"].append(round(line["us"] * 1e3, 2))
        cell["ns"] = statistics.median(cell["runs"])
        return None

    def repeat_error(self) -> float:
        """The largest difference of a cell between boots, in percent; 0 without several."""
        worst = 0.0
        for by_mtu in self.kernels.values():
            for cells in by_mtu.values():
                for side in cells.values():
                    for cell in side.values():
                        if isinstance(cell, dict):
                            for other in cell.get("repeats", []):
                                worst = max(worst, abs(other / cell["ns"] - 1) * 100)
        return worst
