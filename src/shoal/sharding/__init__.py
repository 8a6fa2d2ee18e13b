# SPDX-License-Identifier: Apache-2.0
"""From files of edges to the parts of devices, without ever having the whole graph in memory.

`edge_survey` looks at all edges once: which vertices there are, and how many edges each has.  `external_sort` spreads
them over ranges of their sources, each of which fits in memory, and sorts one range after the other: the rows of the
graph, in a file.  `part_files` reads these as often as it must to write the part of each device.
Only arrays over vertices are in memory as a whole; `budget` says how much that is, and what is left for edges.
"""
