# SPDX-License-Identifier: Apache-2.0
"""Groups of devices that tests choose, in the place of the clock: another one after every superstep."""

from shoal.backends.cpu.regrouping import RegroupingRuns

#: Levels one after the other: devices leave and come back by halves, all but one at once, and one by one.
LEVELS = (1, 2, 3, 0, 2, 1, 0, 3, 1, 1, 0)


def regroup_always(monkeypatch, levels=LEVELS):
    """Let devices hand their parts over after every superstep, to those of the next level."""
    monkeypatch.setattr(RegroupingRuns, "budget", 0)
    monkeypatch.setattr(
        RegroupingRuns, "wanted_level", lambda runs: level_of(runs.num_supersteps, len(runs.runs), levels)
    )


def level_of(superstep, num_devices, levels=LEVELS):
    """The level at which a superstep is done, from the second on; the first is done by all."""
    return min(levels[(superstep - 1) % len(levels)], (num_devices - 1).bit_length())


def size_of(superstep, num_devices, levels=LEVELS):
    """How many devices take part in a superstep."""
    level = 0 if superstep == 0 else level_of(superstep, num_devices, levels)
    return -(-num_devices // 2**level)
