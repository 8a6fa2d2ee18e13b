# SPDX-License-Identifier: Apache-2.0
"""From files of edges to the parts of devices, without ever having the whole graph in memory.

`edge_survey` looks at all edges once: which vertices there are, and how many edges each has.  `key_files` spreads them
over ranges of their sources, each of which fits in memory; `external_sort` sorts one range after the other into the
rows of the graph, a file each.  `part_files` reads these as often as it must to write the part of each device.
Only arrays over vertices are in memory as a whole; `budget` says how much that is, and what is left for edges.
"""
