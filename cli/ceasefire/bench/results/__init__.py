# SPDX-License-Identifier: GPL-2.0-only
"""Results on the disk: what is read and written (store), what is kept in the repository (keep)."""
