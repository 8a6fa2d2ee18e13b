# SPDX-License-Identifier: Apache-2.0
"""What Gunrock took on one, two and six K40s, graph by graph: the runs behind figure 4 of its multi-GPU paper.

From the project's own page of results (doc/stats/mgpu_speedup_all, gunrock/gunrock on GitHub, runs of
gunrock-output/ipdps17/eval_fig4, Tesla K40m, partition random), rounded to four digits; sizes and diameters from table
II of the paper.  Of direction-optimizing search the quicker of two runs.  Graphs without a time on six devices are left
out of a primitive, as they are in the paper's means.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedGraph:
    """A graph of the paper: its kind, vertices and stored edges, and its diameter."""

    kind: str  # soc, web, rmat
    num_vertices: float
    num_edges: float
    diameter: float


GRAPHS = {
    "soc-LiveJournal1": PublishedGraph("soc", 4.85e6, 85.7e6, 13),
    "hollywood-2009": PublishedGraph("soc", 1.14e6, 113e6, 8),
    "soc-orkut": PublishedGraph("soc", 3.00e6, 213e6, 7),
    "soc-sinaweibo": PublishedGraph("soc", 58.7e6, 523e6, 5),
    "soc-twitter-2010": PublishedGraph("soc", 21.3e6, 530e6, 15),
    "indochina-2004": PublishedGraph("web", 7.41e6, 302e6, 24),
    "uk-2002": PublishedGraph("web", 18.5e6, 524e6, 25),
    "arabic-2005": PublishedGraph("web", 22.7e6, 1.11e9, 28),
    "uk-2005": PublishedGraph("web", 39.5e6, 1.57e9, 23),
    "webbase-2001": PublishedGraph("web", 118e6, 1.71e9, 379),
    "rmat_n20_512": PublishedGraph("rmat", 1.05e6, 728e6, 6.26),
    "rmat_n21_256": PublishedGraph("rmat", 2.10e6, 839e6, 7.22),
    "rmat_n22_128": PublishedGraph("rmat", 4.19e6, 925e6, 7.56),
    "rmat_n23_64": PublishedGraph("rmat", 8.39e6, 985e6, 8.32),
    "rmat_n24_32": PublishedGraph("rmat", 16.8e6, 1.02e9, 8.61),
    "rmat_n25_16": PublishedGraph("rmat", 33.6e6, 1.05e9, 9.06),
}

#: Milliseconds of one GPU and of six, by primitive and graph.
MILLISECONDS: dict[str, dict[str, tuple[float, float]]] = {
    "bfs": {
        "arabic-2005": (205.5, 82.18), "hollywood-2009": (18.20, 9.349), "indochina-2004": (71.15, 34.47),
        "rmat_n20_512": (74.09, 17.59), "rmat_n21_256": (93.50, 22.97), "rmat_n22_128": (115.7, 29.55),
        "rmat_n23_64": (143.3, 38.33), "rmat_n24_32": (180.5, 51.02), "rmat_n25_16": (248.7, 74.18),
        "soc-LiveJournal1": (26.29, 16.74), "soc-orkut": (37.85, 15.98), "soc-sinaweibo": (424.3, 165.8),
        "soc-twitter-2010": (158.3, 62.96), "uk-2002": (127.0, 58.60),
    },
    "sssp": {
        "hollywood-2009": (105.8, 88.95), "indochina-2004": (476.7, 379.7), "rmat_n20_512": (703.0, 181.0),
        "rmat_n21_256": (1068, 262.4), "rmat_n22_128": (1397, 345.7), "rmat_n23_64": (1719, 448.7),
        "soc-LiveJournal1": (477.2, 277.5), "soc-orkut": (1059, 523.6),
    },
    "cc": {
        "hollywood-2009": (97.32, 61.06), "indochina-2004": (822.3, 493.1), "rmat_n20_512": (413.9, 93.43),
        "rmat_n21_256": (594.6, 137.5), "rmat_n22_128": (783.1, 192.3), "rmat_n23_64": (1032, 267.4),
        "rmat_n24_32": (1245, 377.7), "rmat_n25_16": (1526, 523.5), "soc-LiveJournal1": (93.11, 139.4),
        "soc-orkut": (210.3, 135.8), "soc-sinaweibo": (926.2, 1054), "soc-twitter-2010": (987.5, 868.2),
        "uk-2002": (1447, 1290),
    },
    "bc": {
        "arabic-2005": (450.9, 353.1), "hollywood-2009": (61.86, 43.67), "indochina-2004": (119.1, 128.7),
        "rmat_n20_512": (425.0, 147.8), "rmat_n21_256": (701.0, 244.5), "rmat_n22_128": (1073, 328.0),
        "rmat_n23_64": (1517, 487.5), "rmat_n24_32": (1966, 611.8), "soc-LiveJournal1": (137.3, 105.0),
        "soc-orkut": (354.1, 116.8), "soc-twitter-2010": (766.4, 465.1), "uk-2005": (626.8, 593.6),
    },
    "pagerank": {
        "arabic-2005": (5547, 1700), "hollywood-2009": (607.0, 140.3), "indochina-2004": (1612, 519.6),
        "rmat_n20_512": (2552, 371.2), "rmat_n21_256": (4496, 772.9), "rmat_n22_128": (7777, 1158),
        "rmat_n23_64": (9602, 6630), "rmat_n24_32": (25546, 2944), "soc-LiveJournal1": (1869, 646.7),
        "soc-orkut": (3823, 712.1), "soc-sinaweibo": (17100, 5017), "soc-twitter-2010": (9984, 3573),
        "uk-2002": (2892, 1111), "uk-2005": (9417, 2889), "webbase-2001": (12492, 6353),
    },
    "dobfs": {
        "arabic-2005": (183.3, 109.1), "hollywood-2009": (5.238, 5.511), "indochina-2004": (51.18, 37.72),
        "rmat_n20_512": (0.9115, 2.643), "rmat_n21_256": (1.608, 3.908), "rmat_n22_128": (3.139, 6.049),
        "rmat_n23_64": (6.358, 10.53), "rmat_n24_32": (13.42, 18.16), "rmat_n25_16": (29.32, 32.66),
        "soc-LiveJournal1": (13.91, 18.92), "soc-orkut": (34.33, 13.63), "soc-sinaweibo": (53.63, 217.8),
        "soc-twitter-2010": (75.24, 58.15), "uk-2002": (111.6, 80.44),
    },
}  # fmt: skip

#: Milliseconds of breadth-first search on two GPUs, where ids have no locality that a random partition takes away.
TWO_GPUS_BFS = {
    "hollywood-2009": 11.97, "rmat_n20_512": 40.63, "rmat_n21_256": 52.03, "rmat_n22_128": 65.38,
    "rmat_n23_64": 81.31, "rmat_n24_32": 105.1, "rmat_n25_16": 146.4, "soc-LiveJournal1": 20.83, "soc-orkut": 24.94,
    "soc-sinaweibo": 322.6, "soc-twitter-2010": 115.9,
}  # fmt: skip
