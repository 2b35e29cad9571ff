"""The order of the pages of the gallery."""

PAGES = [
    *("matrix_game", "coupled_costs", "poker", "risk", "fair", "auc", "policy", "regression"),
    *("programs", "total_variation", "deblurring", "robust_portfolio"),
    *("certificate", "which_method", "two_proximal_steps", "expensive_gradients", "wrappers"),
    *("your_own_function", "watch_and_resume", "poker_at_scale", "larger_than_memory", "many_problems", "own_method"),
    *("hypergradient", "learned_game", "robust_layer"),
]


def place(filename: str) -> int:
    """The place of a script in this order; scripts that are not listed come at the end."""
    name = filename.removesuffix(".py")
    return PAGES.index(name) if name in PAGES else len(PAGES)
