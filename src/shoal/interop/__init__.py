# SPDX-License-Identifier: Apache-2.0
"""Graphs of other libraries as arrays, and back: one file for each library, imported only where it is asked for.

A reader gives `edges.EdgeArrays`, of which `Graph` makes itself; a writer takes a graph.  Nothing here makes a Graph,
so all of it stands below `shoal.graph`, whose methods are the doors to it.
"""
