# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire try`: `cli` boots the guest, `agent` runs the program in it, `samples` reads what it
prints.
"""
