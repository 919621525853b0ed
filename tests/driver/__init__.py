# SPDX-License-Identifier: GPL-2.0-only
"""The test driver: `__main__` is the command, `suites` reads the jobs, the rest runs them."""
