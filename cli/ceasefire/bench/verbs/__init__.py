# SPDX-License-Identifier: GPL-2.0-only
"""The command line: a module for each group of verbs of `ceasefire bench`."""
