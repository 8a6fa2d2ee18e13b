# SPDX-License-Identifier: Apache-2.0
"""The commands of `shoal.cli`, a module for each family.

``options`` says what many commands take, ``flow`` what those that run an algorithm do (read, run, write, print),
``settings`` takes options from a file and from variables, ``vertex_names`` turns a file's own ids into vertices and
back, ``result_files`` writes and reads results, ``display`` is all that is drawn on a terminal, ``logs`` what is
logged, and ``examples`` what ``--help`` shows.
"""
