# SPDX-License-Identifier: Apache-2.0
"""shoal as a backend of NetworkX.

NetworkX reads `info` whenever it is imported, so that module and this one import nothing; everything else is loaded
with the first call that shoal serves.
"""
