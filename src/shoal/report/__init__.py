# SPDX-License-Identifier: Apache-2.0
"""A run one can look at: its trace as a file, a page of charts, a timeline for Perfetto, two runs side by side.

`option` is the argument ``report=`` of every algorithm; `trace` the record of a run and its file; `kinds` what the time
of a device is made of; `aggregation` so much of a long run as an eye can tell apart; `timeline`, `charts` and `tables`
what is shown, a function each; `page` the file around it; `perfetto` and `comparison` the other two things to make.
"""
