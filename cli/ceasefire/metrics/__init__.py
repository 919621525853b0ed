# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel counts, for systems that collect metrics: `ceasefire stat --openmetrics`."""
