"""The order of the tests in a parallel run: every process starts with long tests and ends with short ones.

``pytest -n N --dist worksteal`` cuts the list of tests into N parts of equal length, one for each process. A process
that has finished its part takes tests from the end of another part.
"""

# The files that start first, because their tests need the most time; the longest comes first.
LONGEST = (
    "test_site",
    "test_jax_sharding",
    "test_examples",
    "test_release",
    "test_arrays",
    "test_checkpoint",
    "test_streamed",
    "test_reference_problems",
    "test_batch",
    "test_dask",
    "test_mpi",
    "test_kill",
)
LONG = ("slow", "browser", "cluster")


def in_parts(items, processes):
    """The tests in the order in which ``processes`` processes should get them.

    The marked tests of a file stay in one part, so that what a fixture prepares for a file is prepared once. They are
    followed by as many unmarked tests as make all parts equally long.
    """
    files, short = {}, []
    for item in items:
        if any(item.get_closest_marker(name) for name in LONG):
            files.setdefault(item.path.stem, []).append(item)
        else:
            short.append(item)
    first = {name: place for place, name in enumerate(LONGEST)}
    order = sorted(files, key=lambda name: (first.get(name, len(LONGEST)), -len(files[name])))
    parts, left = [], len(items)
    for part in range(processes):
        own = [item for name in order[part::processes] for item in files[name]]
        length = left // (processes - part)
        fill = max(0, length - len(own))
        parts += own + short[:fill]
        short = short[fill:]
        left -= length
    return parts + short
