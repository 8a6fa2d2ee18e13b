# SPDX-License-Identifier: Apache-2.0
"""Devices of many processes: each rank of an MPI job has some, and speaks for them to the others.

A rank runs its own devices as a machine alone would; where they meet, one more comes, last of all: the `Courier`, on
the thread that called.  It brings what the devices of other ranks have posted and packed, and fetches what is for them.
So compiled code knows nothing of processes.
"""
