# SPDX-License-Identifier: GPL-2.0-only
"""The verb `ceasefire bench`: plans runs of the benchmark programs, judges and draws the results.

The programs themselves are C, in bench/ of the repository, and print JSON lines.
"""
