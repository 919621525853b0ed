# SPDX-License-Identifier: GPL-2.0-only
"""What can be measured: benchmarks and suites, from bench/suites."""
