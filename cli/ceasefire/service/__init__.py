# SPDX-License-Identifier: GPL-2.0-only
"""Services of systemd that run with mechanisms: `ceasefire enable` and `ceasefire disable`."""
