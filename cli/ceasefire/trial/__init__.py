# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire try`. On this side of the guest: `cli` boots it, `stdin` keeps the input of all runs,
`life` tells how far it is, `load` what else this machine did, `report` what came of it. In the
guest: `agent` runs the program. `samples` is what one prints and the other reads.
"""
