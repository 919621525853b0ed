# SPDX-License-Identifier: GPL-2.0-only
"""Starting a program of the user's with FPR: what its file allows, and what turns FPR on for it."""
