# SPDX-License-Identifier: GPL-2.0-only
"""Suites of benchmarks: what is measured (spec), planned (plan), run in a guest or in place
(agent, runner), kept (results), compared (compare) and shown (page, svg).
"""
