"""What users write, as grammars: each draws a value together with what it means.

A grammar is a Hypothesis strategy of ``Said(written, meaning)``. ``written`` is the value as JSON holds it;
``meaning`` is what it must become, in the form in which our models are dumped as JSON. It comes from what was
drawn, never from the code under test. A mapping's meaning names only what was written: defaults are other tests'.

    said       the pair, and how pairs are put together
    scalars    numbers, switches, texts, durations, memory, ranges
    names      names, references, users, tags, environment
    hardware   cpu, gpu, disk, resources
    places     ports, mounts, files, repositories
    policies   retry, schedule, utilization, instances: what profiles hold, too
    traffic    probes, rate limits, scaling, models
    kinds      whole configurations
    misses     values that are almost right, and must be refused
    spelling   one value as YAML, in any style
"""
