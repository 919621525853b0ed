# SPDX-License-Identifier: GPL-2.0-only
"""Makes a film for a video encoder: YUV4MPEG2, the same bytes each time, no two frames alike.

A wavy background moves to the left, and a brighter square goes down in front of it: an encoder has
motion to find, and something that it cannot predict.
"""

import argparse
import random
import sys
from pathlib import Path

from ceasefire.errors import Failure
from ceasefire.text import shown

_SQUARE = 32
_RATE = 25


def make(path: Path, width: int, height: int, frames: int) -> None:
    """Write so many frames."""
    if width < 2 * _SQUARE or height < 2 * _SQUARE or width % 2 or height % 2 or frames < 1:
        raise Failure(f"{width}x{height}: both are even and at least {2 * _SQUARE}")
    rows = background(width, height)
    square = bytes(range(200, 200 + _SQUARE))
    with path.open("wb") as file:
        file.write(f"YUV4MPEG2 W{width} H{height} F{_RATE}:1 Ip A1:1 C420jpeg\n".encode())
        for number in range(frames):
            top = (3 * number) % (height - _SQUARE)
            left = (5 * number) % (width - _SQUARE)
            file.write(b"FRAME\n")
            for y, row in enumerate(rows):
                shift = (2 * number) % width
                line = row[shift : shift + width]
                if top <= y < top + _SQUARE:
                    line = line[:left] + square + line[left + _SQUARE :]
                file.write(line)
            # Two planes of color, of a quarter of the size.
            for level in (120 + number % 8, 136 - number % 8):
                file.write(bytes([level]) * (width // 2 * (height // 2)))


def background(width: int, height: int) -> list[bytes]:
    """Return its rows, each twice as wide as a frame."""
    chance = random.Random(width * 1000003 + height)
    found = []
    for y in range(height):
        noise = chance.randbytes(width)
        row = bytes(64 + (abs(x * 4 % 256 - 128) + y) % 96 + noise[x] % 8 for x in range(width))
        found.append(row + row)
    return found


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    options.add_argument("path", type=Path, metavar="FILE")
    options.add_argument("--width", type=int, default=256)
    options.add_argument("--height", type=int, default=144)
    options.add_argument("--frames", type=int, default=12)
    return options


def _run() -> int:
    args = _options().parse_args()
    try:
        make(args.path, args.width, args.height, args.frames)
    except (Failure, OSError) as error:
        print(shown(f"film: {error}"), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_run())
