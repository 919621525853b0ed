# SPDX-License-Identifier: GPL-2.0-only
"""Morsels, shared memory that has page tables of its own: made, found, filled and emptied."""
