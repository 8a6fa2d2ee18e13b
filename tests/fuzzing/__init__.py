# SPDX-License-Identifier: Apache-2.0
"""Fuzzing of everything that reads a file: broken and hostile inputs, and what must hold for each of them.

A `Target` is a kind of file with a few good ones, a way to spoil them and the code that reads them.  An input is a
dictionary of file contents by name; it is written before it is read, so that one that ends the interpreter is kept.
"""
