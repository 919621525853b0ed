# SPDX-License-Identifier: GPL-2.0-only
"""The checks of `ceasefire doctor`: `here` for the running kernel, `guest` for the harness."""
