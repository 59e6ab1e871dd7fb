-- leaky-bucket: the meter, as a level. Twin: src/core/algorithms/leaky-bucket.ts. Contract: lua/lib/level.lua.
algorithms.leaky_bucket = { params = 5, step = step_level }
