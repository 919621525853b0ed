# SPDX-License-Identifier: GPL-2.0-only
"""The command line of ceasefire: one module per verb, the guest harness in `vm`."""

__version__ = "0.1.0"
