# SPDX-License-Identifier: GPL-2.0-only
"""Everything that is tested: `suites` says what, `driver` runs it, `guest` runs inside guests."""
