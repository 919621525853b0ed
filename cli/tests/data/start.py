# SPDX-License-Identifier: GPL-2.0-only
"""The command line as ./ceasefire starts it, without the shells in between.

On an emulated CPU these take as long as all the rest. For tests of guests that start it often.
"""

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "cli"), str(ROOT)]
runpy.run_module("ceasefire", run_name="__main__", alter_sys=True)
