# SPDX-License-Identifier: Apache-2.0
"""The linear program of frontier stealing: minimise z, with sum_j x_ij = l_i, sum_i c_ij x_ij <= z and x >= 0.

A primal simplex method that begins where nobody steals.  That is a corner whose tableau can be written down, so there
is no first phase, every pivot is a better sharing, and wherever it ends the sharing can be carried out.  A general
solver takes as many pivots, but a millisecond to be told the problem.

The tableau is condensed: a row for each variable that is not 0, its value at the end, and a column for each that is.
Variables are thefts, which have the first numbers, what stays with the owners, and how long devices wait for the last
one.  The row of z is never left, and is the objective.  GUM, section III-A, equation 1.
"""

from __future__ import annotations

import numpy as np

#: Costs are divided by the least one, so that gains and pivots below this are rounding errors.
_TOLERANCE = 1e-9
#: Most pivots for each row: of 3,000 cases of 2 to 16 devices, many with ties, none took five.
_PIVOTS_PER_ROW = 20


def balance(loads: np.ndarray, costs: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Return how many edges of each row's load each device processes, as floats.

    Parameters
    ----------
    loads : edges of each row, above 0
    costs : of an edge of each row on each device, above 0; infinite where it must not go
    owners : the device that processes a row unless somebody steals; its cost is finite
    """
    rows = np.arange(len(loads))
    is_theft = np.isfinite(costs)
    is_theft[rows, owners] = False
    victims, thieves = np.nonzero(is_theft)
    shares = np.zeros(costs.shape)
    tableau, last = _first_tableau(loads, costs / costs.min(), owners, victims, thieves)
    thefts, values = _solve(tableau, last, len(victims))
    shares[victims[thefts], thieves[thefts]] = np.maximum(values, 0)
    shares[rows, owners] = np.maximum(loads - shares.sum(axis=1), 0)
    # Where costs differ by more than a float can tell, thefts may come to more than there is.
    return shares * (loads / shares.sum(axis=1))[:, None]


def _first_tableau(
    loads: np.ndarray, costs: np.ndarray, owners: np.ndarray, victims: np.ndarray, thieves: np.ndarray
) -> tuple[np.ndarray, int]:
    """Return the tableau where nobody steals, and the row of z: that of the device that finishes last."""
    num_rows, num_devices = costs.shape
    thefts = np.arange(len(victims))
    own_costs = costs[np.arange(num_rows), owners]
    times = np.bincount(owners, own_costs * loads, num_devices)
    last = int(times.argmax())
    tableau = np.zeros((num_rows + num_devices, len(victims) + 2))
    # What stays is the load less the thefts.
    tableau[victims, thefts] = 1
    tableau[:num_rows, -1] = loads
    # A theft adds to the thief's time and takes from the owner's; z is the time of the last device and what it waits.
    devices = tableau[num_rows:]
    devices[thieves, thefts] = costs[victims, thieves]
    devices[owners[victims], thefts] -= own_costs[victims]
    devices[last, -2] = 1
    devices[:, -1] = times
    # The others wait z less their time.
    of_last = devices[last].copy()
    devices -= of_last
    devices[:, -1] *= -1
    devices[last, :-1] = -of_last[:-1]
    devices[last, -1] = of_last[-1]
    return tableau, num_rows + last


def _solve(tableau: np.ndarray, objective: int, num_thefts: int) -> tuple[np.ndarray, np.ndarray]:
    """Pivot until z is least; return which thefts are not 0, and their edges."""
    num_rows, num_columns = tableau.shape
    at_column = np.arange(num_columns - 1)
    at_row = np.arange(num_columns - 1, num_columns - 1 + num_rows)
    for _ in range(_PIVOTS_PER_ROW * num_rows):
        column = int(tableau[objective, :-1].argmax())
        if tableau[objective, column] <= _TOLERANCE:
            break
        row = _leaving_row(tableau, column)
        if tableau[row, column] <= _TOLERANCE:  # z has no bound but for rounding errors
            break
        _pivot(tableau, row, column)
        at_row[row], at_column[column] = at_column[column], at_row[row]
    is_theft = at_row < num_thefts
    return at_row[is_theft], tableau[is_theft, -1]


def _leaving_row(tableau: np.ndarray, column: int) -> int:
    """Return the row whose variable is the first to be 0 when that of the column grows; z never is."""
    entries = tableau[:, column]
    steps = np.full(len(tableau), np.inf)
    np.divide(tableau[:, -1], entries, out=steps, where=entries > _TOLERANCE)
    return int(steps.argmin())


def _pivot(tableau: np.ndarray, row: int, column: int) -> None:
    """Exchange the variables of a row and a column."""
    pivot = tableau[row, column]
    of_row, of_column = tableau[row] / pivot, tableau[:, column].copy()
    tableau -= of_column[:, None] * of_row
    tableau[row] = of_row
    tableau[:, column] = of_column / -pivot
    tableau[row, column] = 1 / pivot
