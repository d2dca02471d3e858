"""The experiments of the paper, Section 3: Tables 1 to 8, and what it could not show.

    python -m benchmarks.paper --data FOLDER [--table N ...] [--quick]

* ``sets``: the paper's data sets by name, how to get them, what stands in for those not at hand;
* ``systems``: the algorithms, each with the parameter that ends it and the search for its value;
* ``accurate``, ``lengths``, ``unfolded``: Table 1, bounds on w, Pegasos as its program computes;
* ``tables``: which systems, at which C, make which table; ``runs``: the runs behind them;
* ``claims``, ``verdicts``: what the paper says about its tables, and whether ours say it too;
* ``report``, ``pictures``, ``page``: Markdown and JSON, plots, and docs/paper.md.

C. Panagiotakopoulos and P. Tsampouka, The Stochastic Gradient Descent for the Primal L1-SVM
Optimization Revisited, ECML-PKDD 2013 (arXiv 1304.6383).
"""
