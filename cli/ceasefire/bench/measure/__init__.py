# SPDX-License-Identifier: GPL-2.0-only
"""Takes samples: which boots (schedule), in guests or in place (runner), inside them (agent)."""
