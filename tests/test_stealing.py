# SPDX-License-Identifier: Apache-2.0
"""Shares of frontiers: as good as a solver's that knows only whole edges, nothing lost, no theft for nothing."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from shoal import ArgumentError
from shoal.strategies.stealing import choose_thefts, cost_matrix, evict, select, share_frontier, should_steal
from shoal.strategies.stealing.balance import balance
from shoal.strategies.stealing.frontier import _put_back

pytestmark = pytest.mark.host_only("decisions are arrays: nothing is run")

LEAST = 10_000  # edges; where every load that is not 0 has as many, whole edges hardly matter
SLACK = 0.005  # what a superstep may grow by to avoid thefts
NUM_CASES = {2: 320, 3: 300, 4: 200, 5: 90, 6: 45, 7: 25, 8: 20}  # 1,000, fewer where the solver is slow
GAP = 1e-3  # how near to the best the solver must be
LINKS = (6e9, 25e9, 50e9)  # bytes a second: through the host, one link, two links


def last_finish(shares, costs):
    """When the last device has finished: written out, so that it says nothing with the library's words."""
    size = range(len(costs))
    return max(sum(int(shares[i, j]) * costs[i, j] for i in size if shares[i, j]) for j in size)


def unshared(loads, costs):
    """When the last device finishes if nobody steals."""
    return max(load * cost for load, cost in zip(loads, np.diagonal(costs), strict=True) if load)


def best_whole(loads, costs):
    """The least time with whole edges, as HiGHS finds it, within `GAP`."""
    return solve(loads, costs, np.append(np.ones(costs.size), 0))


def best_fractional(loads, costs):
    """The least time where edges may be divided."""
    return solve(loads, costs, None)


def solve(loads, costs, integrality):
    """The least time that HiGHS finds: the variables are the shares, row by row, and z."""
    size, unit = len(loads), costs[np.isfinite(costs)].max()
    takes = np.kron(np.ones(size), np.eye(size)) * np.where(np.isfinite(costs), costs / unit, 0).ravel()
    gives = np.kron(np.eye(size), np.ones(size))
    rows = np.block([[takes, -np.ones((size, 1))], [gives, np.zeros((size, 1))]])
    found = milp(
        np.eye(size * size + 1)[-1],
        integrality=integrality,
        bounds=Bounds(0, np.append(np.where(np.isfinite(costs), np.inf, 0).ravel(), np.inf)),
        constraints=LinearConstraint(rows, [-np.inf] * size + list(loads), [0] * size + list(loads)),
        options={"mip_rel_gap": GAP},
    )
    assert found.success
    return found.fun * unit


def some_loads(generator, size):
    """Loads of very different sizes, some of them 0, but not all."""
    loads = (LEAST * 10 ** generator.uniform(0, 3, size)).astype(int) * (generator.random(size) < 0.8)
    loads[generator.integers(size)] = LEAST * generator.integers(1, 50)
    return loads


def costs_of_links(generator, size):
    """Costs as between GPUs: no link, one, or two between each pair, some more and some less to compute."""
    links = generator.choice(LINKS, (size, size))
    bandwidth = np.maximum(links, links.T)
    np.fill_diagonal(bandwidth, 900e9)
    return cost_matrix(bandwidth, 8, generator.uniform(1e-10, 4e-10, size))


def any_costs(generator, size):
    """Costs that follow no machine: an edge may be cheaper elsewhere than at home."""
    return generator.uniform(1, 10, (size, size))


def with_evicted(generator, size):
    """Costs as between GPUs, of which some, but not all, do not take part."""
    kept = generator.permutation(size)[: generator.integers(1, size)]
    owners = np.full(size, kept[0])
    owners[kept] = kept
    return evict(costs_of_links(generator, size), owners)


@pytest.mark.parametrize("size", NUM_CASES)
def test_shares_are_within_a_percent_of_the_best_whole_ones(size):
    generator = np.random.default_rng(size)
    for case in range(NUM_CASES[size]):
        loads = some_loads(generator, size)
        costs = (costs_of_links, any_costs, with_evicted)[case % 3](generator, size)
        found, best = last_finish(share_frontier(loads, costs), costs), best_whole(loads, costs)
        assert best * (1 - GAP) <= found <= best * 1.01, (loads.tolist(), costs.tolist())


@pytest.mark.parametrize("has_ties", [True, False])
def test_general_solver_finds_nothing_better(has_ties):
    generator = np.random.default_rng(1)
    for case in range(60):
        size = 2 + case % 7
        loads = LEAST * generator.integers(1, 4, size)
        costs = generator.integers(1, 4, (size, size)) + (0 if has_ties else generator.random((size, size)))
        shares = balance(loads, costs, np.arange(size))
        assert shares.min() >= -1e-6
        np.testing.assert_allclose(shares.sum(axis=1), loads)
        assert (shares * costs).sum(axis=0).max() == pytest.approx(best_fractional(loads, costs), rel=1e-9)


def every_row(load, size):
    """Every way to share out whole edges."""
    return [row for row in itertools.product(range(load + 1), repeat=size) if sum(row) == load]


@pytest.mark.parametrize(("size", "most"), [(2, 12), (3, 3)])
def test_no_sharing_of_few_edges_is_better_by_more_than_what_rounding_costs(size, most):
    generator = np.random.default_rng(size)
    for _ in range(30):
        loads = generator.integers(0, most + 1, size)
        costs = generator.integers(1, 9, (size, size)).astype(float)
        ways = itertools.product(*(every_row(load, size) for load in loads))
        best = min(last_finish(np.array(way), costs) for way in ways)
        found = last_finish(share_frontier(loads, costs), costs)
        # A corner of the linear program has fewer than `size` edges left over.
        assert best <= found <= (1 + SLACK) * best + (size - 1) * costs.max(), (loads, costs)


@st.composite
def cases(draw, evicted=False, least_load=0, highest_cost=1e-7):
    """Loads and costs; with ``evicted`` also the devices that do not take part."""
    size = draw(st.integers(1, 6))
    entries = st.lists(st.floats(1e-10, highest_cost), min_size=size * size, max_size=size * size)
    loads = np.array(draw(st.lists(st.integers(least_load, 10**7), min_size=size, max_size=size)))
    costs = np.array(draw(entries)).reshape(size, size)
    if not evicted:
        return loads, costs
    gone = draw(st.sets(st.integers(0, size - 1), max_size=size - 1))
    costs[:, list(gone)] = np.inf
    return loads, costs, sorted(gone)


@given(case=cases(evicted=True, highest_cost=1e9), least_theft=st.integers(1, 10**6))
def test_every_edge_is_processed_once_and_none_by_who_is_evicted(case, least_theft):
    loads, costs, gone = case
    shares = share_frontier(loads, costs, least_theft=least_theft)
    assert shares.dtype == np.int64
    assert shares.min(initial=0) >= 0
    assert shares.sum(axis=1).tolist() == loads.tolist()
    assert not shares[:, gone].any()


@given(case=cases(), least_theft=st.integers(1, 10**6))
def test_stealing_is_never_slower_than_none(case, least_theft):
    loads, costs = case
    if loads.any():
        shares = share_frontier(loads, costs, least_theft=least_theft)
        assert last_finish(shares, costs) <= unshared(loads, costs) * (1 + 1e-12)


@given(case=cases(), least_theft=st.integers(1, 10**6))
def test_no_theft_is_smaller_than_allowed(case, least_theft):
    loads, costs = case
    shares = share_frontier(loads, costs, least_theft=least_theft)
    thefts = shares[~np.eye(len(loads), dtype=bool)]
    assert thefts[thefts > 0].min(initial=least_theft) >= least_theft


@given(case=cases(least_load=LEAST), factor=st.floats(1e-3, 1e6))
def test_unit_of_costs_does_not_matter(case, factor):
    loads, costs = case
    gain = last_finish(share_frontier(loads, costs), costs) / unshared(loads, costs)
    scaled = last_finish(share_frontier(loads, factor * costs), factor * costs) / unshared(loads, factor * costs)
    assert scaled == pytest.approx(gain, rel=2 * SLACK)


@given(loads=st.lists(st.integers(0, 10**7), min_size=1, max_size=9))
def test_equal_costs_give_equal_loads(loads):
    size = len(loads)
    shares = share_frontier(loads, np.full((size, size), 2e-9))
    assert shares.sum(axis=0).max() <= (1 + SLACK) * sum(loads) / size + size


def uniform(size, remote=4.0):
    """Costs of 1 at home, and the same everywhere else."""
    return np.where(np.eye(size, dtype=bool), 1.0, remote)


def test_one_loaded_device_gives_to_all():
    shares = share_frontier([0, 110_000, 0], uniform(3, remote=20.0))
    assert shares.tolist() == [[0, 0, 0], [5000, 100_000, 5000], [0, 0, 0]]


@pytest.mark.parametrize("loads", [[7], [0, 0], [50_000] * 4, [50_000, 50_100, 49_900]])
def test_nobody_steals_where_nothing_is_gained(loads):
    assert share_frontier(loads, uniform(len(loads))).tolist() == np.diag(loads).tolist()


def test_edges_left_over_go_to_who_takes_part():
    # A third each: 33,333 edges and one left over, which must not become a theft of its own.
    costs = np.array([[1, 1, 1, 9], [9, 1, 9, 9], [9, 9, 1, 9], [9, 9, 9, 1]])
    shares = share_frontier([100_000, 0, 0, 33_333], costs)
    assert sorted(shares[0]) == [0, 33_333, 33_333, 33_334]
    assert shares[3].tolist() == [0, 0, 0, 33_333]


def test_edges_left_over_do_not_go_to_a_slow_owner():
    costs = np.array([[1000, 1, 1], [1, 1, 1], [1, 1, 1]])
    assert last_finish(share_frontier([10_001, 0, 0], costs), costs) <= 5000


def test_thefts_that_go_back_do_not_add_up():
    """Each of eight thieves takes 0.4 % of the time off the owner: most of them must stay."""
    costs = uniform(9, remote=250.0)
    shares = share_frontier([10**6] + [0] * 8, costs)
    assert last_finish(shares, costs) <= (1 + SLACK) * 10**6 / (1 + 8 / 250) + 1
    assert np.count_nonzero(shares) == 8


def test_theft_is_not_kept_for_one_that_went_back():
    """Device 1 robs 0 only because 2 robs 1, and that theft is too small: then nobody steals."""
    costs = np.array([[1, 1.1, np.inf], [np.inf, 2, 2.2], [np.inf, np.inf, 1]])
    shares = share_frontier([200, 50, 0], costs)
    assert 0 < shares[1, 2] < 50 < shares[0, 1]
    assert share_frontier([200, 50, 0], costs, least_theft=50).tolist() == np.diag([200, 50, 0]).tolist()


def test_theft_that_went_back_makes_room_for_the_next():
    shares = np.array([[990, 10, 0], [0, 990, 10], [0, 0, 980]])
    _put_back(shares, np.ones((3, 3)), np.arange(3), least_theft=1, limit=1005)
    assert shares.tolist() == np.diag([1000, 1000, 980]).tolist()


@pytest.mark.parametrize("exponent", [12, 18, 25])
def test_costs_beyond_what_a_float_can_tell_apart_lose_no_edge(exponent):
    generator = np.random.default_rng(exponent)
    for case in range(100):
        size = 2 + case % 7
        loads = (10 ** generator.uniform(0, 15, size)).astype(int)
        costs = 10 ** generator.uniform(0, exponent, (size, size))
        shares = share_frontier(loads, costs)
        assert shares.min() >= 0
        assert shares.sum(axis=1).tolist() == loads.tolist()
        assert last_finish(shares, costs) <= unshared(loads, costs) * (1 + 1e-12)


def test_thief_may_be_robbed():
    """Where no link leads from the slow device to the free one, the one between passes work on."""
    costs = np.array([[1, 1.5, np.inf], [1.5, 1, 1.5], [np.inf, 1.5, 1]])
    shares = share_frontier([90_000, 30_000, 0], costs)
    assert shares[0, 1] > 0
    assert shares[1, 2] > 0
    assert shares[0, 2] == 0


def test_evicted_device_is_served_by_its_owner():
    costs = uniform(3)
    costs[:, 2] = np.inf
    shares = share_frontier([0, 40, 5000], costs, owners=np.array([0, 1, 1]), least_theft=10_000)
    assert shares.tolist() == [[0, 0, 0], [0, 40, 0], [0, 5000, 0]]
    assert share_frontier([0, 40, 5000], costs)[2, :2].sum() == 5000


@pytest.mark.parametrize(
    ("loads", "costs", "message"),
    [
        ([1, 2], [[1, 1]], r"costs has the shape \(1, 2\) for 2 loads"),
        ([], np.ones((0, 0)), "for 0 loads"),
        ([-1, 2], uniform(2), "minima -1 and 1.0"),
        ([1, 2], uniform(2, remote=0.0), "minima 1 and 0.0"),
        ([1, 2], uniform(2, remote=np.nan), "minima 1 and nan"),
        ([0, 2], [[1, np.inf], [np.inf, np.inf]], r"costs\[1, 0\]=inf, but device 1 has 2 edges"),
    ],
)
def test_wrong_loads_and_costs_are_refused(loads, costs, message):
    with pytest.raises(ArgumentError, match=message):
        share_frontier(loads, costs)


def test_costs_are_those_of_the_paper():
    costs = cost_matrix([[4.0, 2.0], [0.0, 8.0]], bytes_per_edge=8, seconds_per_edge=[10.0, 20.0])
    assert costs.tolist() == [[12.0, 14.0], [np.inf, 21.0]]
    costs = cost_matrix([[4.0, 2.0], [1.0, 8.0]], bytes_per_edge=8, seconds_per_edge=1.0, evicted=[0])
    assert costs.tolist() == [[np.inf, 5.0], [np.inf, 2.0]]
    with pytest.raises(ArgumentError, match=r"bandwidth has the shape \(2,\)"):
        cost_matrix([1.0, 2.0], 8, 1.0)


@pytest.mark.parametrize(("loads", "expected"), [([99, 0], False), ([100, 51], False), ([100, 50], True)])
def test_thresholds_include_their_values(loads, expected):
    assert should_steal(loads, least_load=100, least_gap=50) is expected


def test_decision_says_what_is_stolen_and_why():
    decision = choose_thefts([60_000, 0], uniform(2, 2.0), least_load=50_000, least_gap=50_000, least_theft=1)
    assert decision.to_dict() == {
        "reason": "stealing ends the superstep sooner",
        "members": [0, 1],
        "owners": [0, 1],
        "thefts": [{"victim": 0, "thief": 1, "edges": 20_000}],
        "stolen_edges": 20_000,
        "seconds_before": 60_000.0,
        "seconds_after": 40_000.0,
    }


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"least_load": 60_001}, "there is too little to steal"),
        ({"least_gap": 60_001}, "there is too little to steal"),
        ({"least_theft": 60_001}, "stealing gains nothing"),
    ],
)
def test_decision_says_why_nothing_is_stolen(how, reason):
    how = {"least_load": 0, "least_gap": 0, "least_theft": 1} | how
    decision = choose_thefts([60_000, 0], uniform(2, 2.0), **how)
    assert (decision.reason, decision.thefts) == (reason, [])
    assert decision.seconds_before == decision.seconds_after == 60_000.0


def test_thresholds_are_asked_of_those_who_take_part():
    """Device 2 has no load because device 1 has taken it over: that is no gap."""
    owners, how = np.array([0, 1, 1]), {"least_load": 0, "least_gap": 30_000, "least_theft": 1}
    decision = choose_thefts([60_000, 30_001, 0], uniform(3), owners, **how)
    assert decision.thefts == []
    decision = choose_thefts([60_000, 30_000, 0], uniform(3), owners, **how)
    assert [(victim, thief) for victim, thief, _ in decision.thefts] == [(0, 1)]
    assert decision.members == [0, 1]


@st.composite
def frontiers(draw):
    """Degrees of a frontier's vertices, and shares of its edges."""
    degrees = draw(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 1000)), min_size=1, max_size=60))
    cuts = draw(st.lists(st.integers(0, sum(degrees)), max_size=7))
    return np.array(degrees), np.diff([0, *sorted(cuts), sum(degrees)])


@given(frontiers())
def test_cuts_are_as_near_as_possible_to_the_shares(frontier):
    degrees, shares = frontier
    ends = np.concatenate([[0], np.cumsum(degrees)])
    cuts = select(ends[1:], shares)
    assert cuts[0] == 0
    assert cuts[-1] == len(degrees)
    assert (np.diff(cuts) >= 0).all()
    for cut, wanted in zip(cuts[1:], np.cumsum(shares), strict=True):
        assert abs(ends[cut] - wanted) == np.abs(ends - wanted).min()
    for begin, end, share in zip(cuts, cuts[1:], shares, strict=False):
        assert abs(ends[end] - ends[begin] - share) <= degrees.max()
        assert share > 0 or begin == end or not degrees.any()


def test_vertices_without_edges_go_with_those_before_them():
    assert select(np.cumsum([0, 0, 3, 0, 3, 0]), [0, 3, 0, 3, 0]).tolist() == [0, 0, 4, 4, 6, 6]


def test_frontier_without_vertices_is_cut_nowhere():
    assert select(np.zeros(0, np.int64), [0, 0]).tolist() == [0, 0, 0]


def test_shares_of_another_frontier_are_refused():
    with pytest.raises(ArgumentError, match="shares sum to 5; they must sum to the 6 edges"):
        select(np.cumsum([1, 2, 3]), [2, 3])
