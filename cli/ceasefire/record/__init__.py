# SPDX-License-Identifier: GPL-2.0-only
"""Records where a program's TLB shootdowns come from, and tells what FPR would save of them."""
