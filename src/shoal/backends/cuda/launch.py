# SPDX-License-Identifier: Apache-2.0
"""How many threads the persistent kernels have: all of them run at once."""

from __future__ import annotations

# A block's threads and a multiprocessor's blocks: a thread then has 64 registers, and hardly a kernel needs more.  One
# block has fewer that meet: searches by priority on an H200 take 8 % less time than with two blocks of half the size;
# three and four of those were slower yet where all meet often.
BLOCK_THREADS = 1024
BLOCK_WARPS = BLOCK_THREADS // 32
BLOCKS_PER_PROCESSOR = 1
# A step that is done once has few meetings, and often threads that follow pointers and wait: twice as many do more in
# that time, though each has half the registers.
BLOCKS_OF_ONE_STEP = 2
