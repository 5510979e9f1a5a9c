#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""Rows of settings in which every two values of different axes meet.

  pairs.py [--all] AXIS=VALUE,VALUE... ...

One row a line, `AXIS=VALUE AXIS=VALUE ...`, the same ones for the same axes; with --all every
combination there is. A value can bring other settings along, `VALUE+NAME=VALUE`: those that have a
meaning only beside it. Exit 1, with what is missing, if a pair were in none.
"""

import argparse
import itertools
import sys

Row = tuple[str, ...]


def parse_axis(text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    if not equals or not all(values.split(",")):
        raise argparse.ArgumentTypeError(f"{text}: want AXIS=VALUE,VALUE...")
    return name, values.split(",")


def pairs_of(row: Row) -> set[tuple[int, str, int, str]]:
    return {(i, row[i], k, row[k]) for i, k in itertools.combinations(range(len(row)), 2)}


def choose(axes: list[list[str]]) -> list[Row]:
    """Greedy: always the combination with the most pairs that no row has yet."""
    everything = list(itertools.product(*axes))
    missing = set().union(*map(pairs_of, everything))
    rows = []
    while missing:
        # Of equals the one least like the rows that are there, so that values take turns.
        best = max(everything, key=lambda row: (
            len(pairs_of(row) & missing), -sum(value in row for other in rows for value in other)))
        rows.append(best)
        missing -= pairs_of(best)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every combination")
    parser.add_argument("axes", nargs="+", type=parse_axis, metavar="AXIS=VALUE,...")
    arguments = parser.parse_args()
    names = [name for name, _ in arguments.axes]
    values = [axis for _, axis in arguments.axes]
    rows = list(itertools.product(*values)) if arguments.all else choose(values)
    for row in rows:
        settings = (f"{name}={value}" for name, value in zip(names, row, strict=True))
        print(" ".join(settings).replace("+", " "))

    # Told from the rows, not from how they were found.
    for (i, first), (k, second) in itertools.combinations(enumerate(values), 2):
        for a, b in itertools.product(first, second):
            if not any(row[i] == a and row[k] == b for row in rows):
                print(f"pairs: no row has {names[i]}={a} and {names[k]}={b}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
