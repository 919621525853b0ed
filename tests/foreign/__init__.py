# SPDX-License-Identifier: GPL-2.0-only
"""Test suites of others, without and with fast page recycling forced on: docs/foreign.md."""
