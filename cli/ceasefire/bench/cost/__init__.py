# SPDX-License-Identifier: GPL-2.0-only
"""Instructions of single operations of the kernel, counted under -icount."""
