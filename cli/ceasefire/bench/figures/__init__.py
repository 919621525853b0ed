# SPDX-License-Identifier: GPL-2.0-only
"""From samples to figures: ratios with intervals, what is lost, what the paper has."""
