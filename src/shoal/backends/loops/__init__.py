# SPDX-License-Identifier: Apache-2.0
"""What the loops of all backends have in common: where a run stands, where frontiers lie, and the end of a superstep.

A loop is written for a phase of a program and runs without Python.  Backends write the operators in their own language;
rules, the control block and the serial end of a superstep are the same Python for each of them.
"""
