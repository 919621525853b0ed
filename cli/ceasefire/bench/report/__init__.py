# SPDX-License-Identifier: GPL-2.0-only
"""From figures to what is read: the page, its pictures, texts with figures in them."""
