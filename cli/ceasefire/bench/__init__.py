# SPDX-License-Identifier: GPL-2.0-only
"""The verb `ceasefire bench`: measures benchmarks and applications, judges and shows the results.

The programs themselves are C, in bench/ of the repository, and print JSON lines. Here, each room
knows those above it only:

  latency    histograms, as they are printed and drawn
  results    what is on the disk: read and written, and made small for the repository
  catalog    what can be measured: benchmarks and suites, from bench/suites
  apps       applications under load; each module is a program of its own
  measure    takes samples: which boots, in a guest or in place, inside it
  cost       instructions of single operations, under -icount
  figures    from samples to figures: ratios with intervals, ideals, the paper
  report     from figures to what is read: tables, the page and its pictures, texts
  verbs      the command line, a module for each verb; cli.py lists them
"""
