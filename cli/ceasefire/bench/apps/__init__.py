# SPDX-License-Identifier: GPL-2.0-only
"""Unmodified applications under load, one module each, started by the agent of a suite as
`python -m ceasefire.bench.apps.NAME`. Each prints one JSON line: operations, seconds, rate, wrong.

`--with WORDS` starts the program under test through other words, `mode-run fpr` for one.
All files are below the current folder.
"""
