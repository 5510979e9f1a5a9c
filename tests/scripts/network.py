#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""The switch between guests, with sockets in their place.

Claim: it passes every frame on, in order, to whom it is for; who is slow makes others wait, and
loses nothing; who is frozen or gone holds up nobody.
"""

import asyncio
import os
import socket
import struct
import sys
import tempfile
import threading
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vm/lib"))

from network import Network, build_switch  # noqa: E402

FRAMES = 3000
FRAME_BYTES = 4000  # so that all of them are more than sockets and queues can hold
TIMEOUT_S = 60
BROADCAST = b"\xff" * 6


def address(port: int) -> bytes:
    return bytes((0x52, 0x54, 0, 0, 0, port))


class Card:
    """A guest's end: whole frames."""

    def __init__(self, port: int, fd: int) -> None:
        self.port = port
        self.socket = socket.socket(fileno=fd)
        self.socket.settimeout(TIMEOUT_S)

    def send(self, to: bytes, number: int, size: int = 64) -> None:
        frame = to + address(self.port) + struct.pack("!I", number)
        frame = frame.ljust(size, b"\0")
        self.socket.sendall(struct.pack("!I", len(frame)) + frame)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def receive(self) -> int:
        """The number of the next frame."""
        size, = struct.unpack("!I", self._exactly(4))
        return struct.unpack("!I", self._exactly(size)[12:16])[0]


def expect(what: str, got: object, wanted: object) -> None:
    if got != wanted:
        sys.exit(f"{what}: got {got}, wanted {wanted}")
    print(f"ok: {what}", flush=True)


def flood(card: Card, to: bytes) -> threading.Thread:
    def send() -> None:
        for number in range(FRAMES):
            card.send(to, number, FRAME_BYTES)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread


def learns(cards: list[Card]) -> None:
    for card in cards:
        card.send(BROADCAST, card.port)
    for card in cards:
        expect(f"card {card.port} gets every broadcast but its own",
               {card.receive() for _ in range(2)}, {0, 1, 2} - {card.port})
    cards[0].send(address(1), 100)
    cards[0].send(address(2), 200)
    expect("what is for one card goes to it", cards[1].receive(), 100)
    expect("and not to another", cards[2].receive(), 200)


def loses_nothing(cards: list[Card]) -> None:
    sender = flood(cards[0], address(1))
    # Nobody takes the flood yet: it waits, and others do not.
    cards[2].send(address(0), 7)
    expect("beside a flood that waits frames pass", cards[0].receive(), 7)
    got = [cards[1].receive() for _ in range(FRAMES)]
    expect("no frame of a flood is lost, none overtakes", got, list(range(FRAMES)))
    sender.join(TIMEOUT_S)


async def frozen(network: Network, cards: list[Card]) -> None:
    await network.set_running(1, False)
    sender = flood(cards[0], address(1))
    await asyncio.to_thread(sender.join, TIMEOUT_S)
    expect("a flood to a frozen guest ends", sender.is_alive(), False)
    cards[0].send(address(2), 8)
    expect("frames to others pass", cards[2].receive(), 8)
    await network.set_running(1, True)
    cards[0].send(address(1), FRAMES + 1)
    numbers = [cards[1].receive()]
    while numbers[-1] <= FRAMES:
        numbers.append(cards[1].receive())
    expect("once it runs again it gets frames, whole ones, in order", numbers, sorted(numbers))


def gone(cards: list[Card]) -> None:
    cards[1].socket.close()
    sender = flood(cards[0], address(1))
    sender.join(TIMEOUT_S)
    expect("a flood to a guest that has ended ends", sender.is_alive(), False)
    cards[0].send(address(2), 9)
    expect("frames to others pass then, too", cards[2].receive(), 9)


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        network = Network(build_switch(Path(directory)), 3, 1)
        cards = [Card(port, os.dup(network.fds(port)[0]))
                 for port in range(3)]
        await network.start()
        for port in range(3):
            network.given(port)
        await asyncio.to_thread(learns, cards)
        await asyncio.to_thread(loses_nothing, cards)
        await frozen(network, cards)
        await asyncio.to_thread(gone, cards)
        await network.end()


if __name__ == "__main__":
    asyncio.run(main())
