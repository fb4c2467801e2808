"""Upper bounds of the buckets in which durations are counted, in seconds. Few: each is a line of `/metrics` for each container."""

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
