# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: what a call has done so far, in a folder, so that the same call can go on from there later.

`option` is the argument of every algorithm, `record` what a call keeps and finds again, `folder` the files, `resume`
the way back.
"""
